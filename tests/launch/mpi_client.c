/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins a job through MPI and through PMIx, in the order that its argument gives, and says what
 * each of them thinks of it. With `abort` it calls MPI_Abort. */
#include <mpi.h>
#include <pmix.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pmix_proc_t self;

static void join_pmix(void) {
  if (PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS) exit(99);
}

static uint32_t pmix_size(void) {
  pmix_proc_t everybody;
  pmix_value_t* value = NULL;
  uint32_t size = 0;
  PMIX_LOAD_PROCID(&everybody, self.nspace, PMIX_RANK_WILDCARD);
  if (PMIx_Get(&everybody, PMIX_JOB_SIZE, NULL, 0, &value) != PMIX_SUCCESS) exit(98);
  size = value->data.uint32;
  PMIX_VALUE_RELEASE(value);
  return size;
}

int main(int argc, char** argv) {
  const char* order = argc > 1 ? argv[1] : "mpi-first";
  int rank, size, sum;
  if (strcmp(order, "pmix-first") == 0) join_pmix();
  MPI_Init(&argc, &argv);
  if (strcmp(order, "pmix-first") != 0) join_pmix();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (strcmp(order, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
  printf("MPI %d of %d, PMIx %u of %u, sum %d\n", rank, size, self.rank, pmix_size(), sum);
  MPI_Finalize();
  PMIx_Finalize(NULL, 0);
  return 0;
}
