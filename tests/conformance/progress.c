/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=2,3,4,7 */
/*
 * A PE that computes without calling the library still serves its peers: first contact, gets, puts,
 * atomics and signals all complete while it never enters a call. It computes until it sees in its
 * own memory that its peers are done, so if it had to help, nobody would ever end. With an odd
 * number of PEs it has reached out to a peer itself before, in a moment when nobody wanted anything
 * of it.
 */
#include "conformance.h"

enum { kLarge = 1024 * 1024, kRoom = kLarge + 8 * kMaxPes };

static long finished; /* on PE 0: peers that are done */
static long counter[3];
static unsigned char large_in_bss[kRoom];

static void use_memory_of(int pe, unsigned char* large, uint64_t* signal_word, long* count) {
  static unsigned char buffer[kLarge];
  t_check(shmem_long_g(&counter[2], pe) == 12345, "a first get gives something else");
  static const size_t sizes[] = {1, 8, 100, 5000, 70000, kLarge};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; ++s) {
    shmem_getmem(buffer, large, sizes[s], pe);
    const size_t wrong = t_differs(buffer, sizes[s], t_key(pe, 0, 1));
    t_check(wrong == sizes[s], "get of %zu bytes: byte %zu is wrong", sizes[s], wrong);
  }
  for (int i = 0; i < 100; ++i) {
    shmem_long_atomic_inc(count, pe);
    (void)shmem_long_atomic_fetch_add(count, 2, pe);
  }
  const long slot = 100 + t_me;
  shmem_putmem_signal(large + kLarge + t_me * 8, &slot, 8, signal_word, 1, SHMEM_SIGNAL_ADD, pe);
  shmem_quiet();
}

/* No call into the library: plain loads only. */
static void compute_until(long peers) {
  volatile double sum = 0;
  while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < peers) {
    for (int i = 1; i < 1000; ++i) sum = sum + 1.0 / i;
  }
}

int main(void) {
  t_start();
  unsigned char* large = shmem_malloc(kRoom);
  uint64_t* signal_word = shmem_calloc(2, sizeof *signal_word);
  t_fill(large, kLarge, t_key(t_me, 0, 1));
  t_fill(large_in_bss, kLarge, t_key(t_me, 0, 1));
  counter[2] = 12345;
  shmem_barrier_all();
  if (t_pes > 1 && t_pes % 2 == 1) {
    if (t_me == 0)
      t_check(shmem_long_g(&counter[2], 1) == 12345, "a get by PE 0 gives something else");
    shmem_barrier_all();
  }
  if (t_me == 0) {
    compute_until(t_pes - 1);
    t_check(counter[0] == 300L * (t_pes - 1) && counter[1] == 300L * (t_pes - 1),
            "atomics of the peers left %ld and %ld", counter[0], counter[1]);
    t_check(shmem_signal_fetch(&signal_word[0]) == (unsigned)t_pes - 1 &&
                shmem_signal_fetch(&signal_word[1]) == (unsigned)t_pes - 1,
            "signals of the peers are missing");
  } else {
    use_memory_of(0, large, &signal_word[0], &counter[0]);
    use_memory_of(0, large_in_bss, &signal_word[1], &counter[1]);
    shmem_long_atomic_inc(&finished, 0);
    shmem_quiet();
  }
  return t_finish();
}
