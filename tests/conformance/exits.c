/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exits HOW STATUS WHAT: ways to leave. The last PE leaves HOW with STATUS while the others do
 * WHAT, which without it takes longer than any test may.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t word;
static uint64_t about_to; /* on the last PE: the others that are about to do WHAT */

static void spend_time(const char* what) {
  if (strcmp(what, "sleep") == 0) sleep(600);
  if (strcmp(what, "barrier") == 0) shmem_barrier_all();
  if (strcmp(what, "wait") == 0) (void)shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 1);
  if (strcmp(what, "get") == 0) {
    for (;;) (void)shmem_uint64_g(&word, shmem_n_pes() - 1);
  }
  for (volatile unsigned long turns = 0; strcmp(what, "spin") == 0;) turns = turns + 1;
}

static int leave(const char* how, int status) {
  if (strcmp(how, "global_exit") == 0) {
    printf("a line that is not flushed; ");
    shmem_global_exit(status);
  }
  if (strcmp(how, "exit") == 0) exit(status);
  if (strcmp(how, "_exit") == 0) _exit(status);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "finalize") == 0) shmem_finalize();
  if (strcmp(how, "fork") == 0) {
    /* The child leaves by itself: it is no PE, and neither finalizes nor waits. */
    if (fork() == 0) exit(0);
    int child = -1;
    wait(&child);
    return child == 0 ? status : 96;
  }
  return status;
}

int main(int argc, char** argv) {
  if (argc != 4) return 99;
  shmem_init();
  const int last = shmem_n_pes() - 1;
  const int is_last = shmem_my_pe() == last;
  shmem_barrier_all();
  if (strcmp(argv[3], "same") == 0) {
    /* What was sent arrives although nobody calls shmem_finalize. */
    shmem_uint64_p(&word, 4711, (shmem_my_pe() + 1) % (last + 1));
    return leave(argv[1], atoi(argv[2]));
  }
  if (is_last) {
    shmem_uint64_wait_until(&about_to, SHMEM_CMP_EQ, (unsigned)last);
    return leave(argv[1], atoi(argv[2]));
  }
  shmem_uint64_atomic_inc(&about_to, last);
  shmem_quiet();
  spend_time(argv[3]);
  return 0;
}
