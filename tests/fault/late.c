/* SPDX-License-Identifier: BSD-3-Clause */
/* late WHAT SECONDS: PE 1 comes SECONDS late to what the others wait for. */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t word = 5;

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  shmem_init();
  shmem_barrier_all();
  if (shmem_my_pe() == 1) {
    const long milliseconds = (long)(atof(argv[2]) * 1000);
    const struct timespec nap = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&nap, NULL);
    for (int pe = 0; pe < shmem_n_pes(); ++pe) shmem_uint64_atomic_set(&word, 9, pe);
    shmem_quiet();
  }
  if (strcmp(argv[1], "barrier") == 0) shmem_barrier_all();
  if (strcmp(argv[1], "wait") == 0) shmem_uint64_wait_until(&word, SHMEM_CMP_GT, 7);
  shmem_finalize();
  return 0;
}
