/* SPDX-License-Identifier: BSD-3-Clause */
/* startup.c - the shortest OpenSHMEM program: what a launcher and init cost. Exit code 0 when all
 * PEs met. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
  shmem_init();
  int me = shmem_my_pe(), n = shmem_n_pes();
  shmem_barrier_all();
  if (me == 0) printf("%d PEs met\n", n);
  shmem_finalize();
  return 0;
}
