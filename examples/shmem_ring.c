/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=1,2,3,4,7,16 */
/*
 * shmem_ring [ROUNDS]: a message travels around all PEs, ROUNDS times (default 10). Each PE adds
 * its number to it and passes it on with one call, which also tells the next PE that it is there.
 *
 * Buffer and signal are static variables: these are symmetric, that is, each PE has its own under
 * the same name. What shmem_malloc() returns is, too.
 */
#include <inttypes.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { kLength = 1000 };

static int64_t message[kLength];
static uint64_t arrived; /* how often the message has come to this PE */

/* After r rounds each element has grown by r times the sum of all numbers of PEs. */
static int is_right(const int64_t* element, int64_t rounds, int pes) {
  const int64_t sum = (int64_t)pes * (pes - 1) / 2;
  for (int64_t i = 0; i < kLength; ++i) {
    if (element[i] != i + rounds * sum) return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  const int64_t rounds = argc > 1 ? atoll(argv[1]) : 10;
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const int next = (me + 1) % pes;
  static int64_t outgoing[kLength]; /* any memory would do: only the destination is symmetric */

  for (int64_t i = 0; me == 0 && i < kLength; ++i) outgoing[i] = i;
  for (int64_t round = 1; round <= rounds; ++round) {
    /* PE 0 starts each round, with its number 0; the others wait for the message first. */
    if (me != 0) {
      shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, (uint64_t)round);
      for (int64_t i = 0; i < kLength; ++i) outgoing[i] = message[i] + me;
    }
    shmem_int64_put_signal(message, outgoing, kLength, &arrived, 1, SHMEM_SIGNAL_ADD, next);
    if (me == 0) {
      shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, (uint64_t)round);
      for (int64_t i = 0; i < kLength; ++i) outgoing[i] = message[i];
    }
  }

  const int right = me != 0 || is_right(outgoing, rounds, pes);
  if (me == 0) {
    printf("%d PEs, %" PRId64 " rounds, %d elements: %s\n", pes, rounds, (int)kLength,
           right ? "verified" : "WRONG");
  }
  shmem_finalize();
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
