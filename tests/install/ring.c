/* SPDX-License-Identifier: BSD-3-Clause */
/* A C program as a user would write it: every PE puts its number to the next. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  int* from = shmem_calloc(1, sizeof *from);
  if (from == NULL) return 1;
  shmem_int_p(from, me + 1, (me + 1) % pes);
  shmem_barrier_all();
  const int expected = (me + pes - 1) % pes + 1;
  if (*from != expected) {
    fprintf(stderr, "PE %d has %d and not %d\n", me, *from, expected);
    shmem_global_exit(1);
  }
  shmem_free(from);
  shmem_finalize();
  return 0;
}
