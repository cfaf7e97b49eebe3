/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=1,2,3,4,7,16 */
/*
 * 9.9: nobody leaves barrier_all or sync_all before everybody has entered, round after round,
 * whoever is late; barrier_all completes what was sent, sync_all makes the caller's own stores
 * visible.
 */
#include "conformance.h"

enum { kManyRounds = 400, kLateRounds = 40 };

static long arrivals; /* on PE 0 */
static long* epoch_in_heap;
static long epoch_in_bss[kMaxPes];
static long own_value[2]; /* stored by its owner alone, in turns */

static void be_late(uint64_t round) {
  const uint64_t fate = t_key(t_me, 0, round);
  if (fate % 4 == 0) t_sleep_us((unsigned)(fate >> 32) % 2000);
}

static void nobody_leaves_early(void (*meet)(void), const char* name) {
  arrivals = 0;
  shmem_barrier_all();
  for (long round = 1; round <= kLateRounds; ++round) {
    be_late((uint64_t)round);
    (void)shmem_long_atomic_fetch_inc(&arrivals, 0); /* has happened when it returns */
    meet();
    const long entered = shmem_long_atomic_fetch(&arrivals, 0);
    t_check(entered >= round * t_pes, "%s, round %ld: left after %ld of %ld arrivals", name, round,
            entered, round * t_pes);
  }
  shmem_barrier_all();
}

static void barrier_completes(bool late, int rounds) {
  memset(epoch_in_bss, 0, sizeof epoch_in_bss);
  memset(epoch_in_heap, 0, kMaxPes * sizeof *epoch_in_heap);
  shmem_barrier_all();
  for (long round = 1; round <= rounds; ++round) {
    if (late) be_late((uint64_t)round + 1000);
    for (int step = 0; step < t_pes; ++step) {
      const int pe = (t_me + step) % t_pes;
      shmem_long_put_nbi(&epoch_in_bss[t_me], &round, 1, pe);
      shmem_long_p(&epoch_in_heap[t_me], round, pe);
    }
    shmem_barrier_all();
    for (int pe = 0; pe < t_pes; ++pe) {
      t_check(epoch_in_heap[pe] == round && epoch_in_bss[pe] == round,
              "round %ld: PE %d's puts before the barrier left %ld in the heap, %ld in .bss", round,
              pe, epoch_in_heap[pe], epoch_in_bss[pe]);
    }
    shmem_sync_all(); /* nobody writes the next epoch before everybody has looked */
  }
}

static void sync_shows_own_stores(void) {
  shmem_barrier_all();
  for (long round = 1; round <= kManyRounds; ++round) {
    own_value[round % 2] = round * 1000 + t_me;
    shmem_sync_all();
    const int pe = (int)((t_me + round) % t_pes);
    const long seen = shmem_long_g(&own_value[round % 2], pe);
    t_check(seen == round * 1000 + pe, "round %ld: PE %d's own store is %ld to others", round, pe,
            seen);
  }
  shmem_barrier_all();
}

int main(void) {
  t_start();
  epoch_in_heap = shmem_malloc(kMaxPes * sizeof *epoch_in_heap);
  for (int i = 0; i < 3000 / t_pes; ++i) shmem_barrier_all();
  for (int i = 0; i < 3000 / t_pes; ++i) shmem_sync_all();
  nobody_leaves_early(shmem_barrier_all, "barrier_all");
  nobody_leaves_early(shmem_sync_all, "sync_all");
  barrier_completes(false, kManyRounds / t_pes);
  barrier_completes(true, kLateRounds);
  sync_shows_own_stores();
  return t_finish();
}
