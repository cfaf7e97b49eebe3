/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hybrid_mpi [mpi-first|shmem-first]: MPI and OpenSHMEM in one process, started in either order.
 * Both see the same processes under the same numbers, and both communicate: values travel around a
 * ring by puts, and MPI adds up what has arrived.
 *
 * It is compiled by mpicc with the flags of oshcc, see doc/launchers.md.
 */
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long received; /* static variables are symmetric */

/* Ends the whole job, unless `holds`. */
static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "hybrid_mpi: not true: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

int main(int argc, char** argv) {
  const char* order = argc > 1 ? argv[1] : "mpi-first";
  const int shmem_first = strcmp(order, "shmem-first") == 0;
  if (!shmem_first && strcmp(order, "mpi-first") != 0) {
    fprintf(stderr, "usage: hybrid_mpi [mpi-first|shmem-first]\n");
    return EXIT_FAILURE;
  }
  if (shmem_first) shmem_init();
  MPI_Init(&argc, &argv);
  if (!shmem_first) shmem_init();

  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(size == shmem_n_pes(), "the size of MPI_COMM_WORLD is the number of PEs");
  check(rank == shmem_my_pe(), "the rank is the number of the PE");

  const long mine = 1000 + rank;
  shmem_long_put(&received, &mine, 1, (rank + 1) % size);
  shmem_barrier_all();
  check(received == 1000 + (rank + size - 1) % size, "the neighbour's value has arrived");

  long sum = 0;
  MPI_Allreduce(&received, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  check(sum == 1000L * size + (long)size * (size - 1) / 2, "the sum of all values");
  if (rank == 0) printf("%s: %d PEs, sum %ld: verified\n", order, size, sum);

  /* The other way round than they were started; either order does. */
  if (shmem_first) {
    MPI_Finalize();
    shmem_finalize();
  } else {
    shmem_finalize();
    MPI_Finalize();
  }
  return EXIT_SUCCESS;
}
