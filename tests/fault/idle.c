/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=2 mpirun=no args=4 */
/*
 * idle [SECONDS]: a job that sleeps uses no processor, although both transports are up and
 * connected: at most 0.1 % of a core in each PE, all its threads together.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static long in_bss; /* reached through UCX */

static double used_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void nap(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 30;
  shmem_init();
  long* heap = shmem_calloc(1, sizeof *heap);
  const int next = (shmem_my_pe() + 1) % shmem_n_pes();
  for (int i = 0; i < 100; ++i) {
    shmem_long_atomic_inc(&in_bss, next);
    shmem_long_atomic_inc(heap, next);
  }
  shmem_barrier_all();
  if (in_bss != 100 || *heap != 100) return 1;
  nap(0.5); /* what the last messages left to do is done */
  const double before = used_seconds();
  nap(seconds);
  const double used = used_seconds() - before;
  const double share = used / seconds;
  printf("PE %d used %.3f ms in %.0f s: %.4f %% of a core\n", shmem_my_pe(), used * 1e3, seconds,
         share * 100);
  fflush(stdout);
  shmem_barrier_all();
  shmem_finalize();
  return share <= 0.001 ? 0 : 1;
}
