/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=1,2,3,4,7 */
/*
 * 9.12: fence puts what was sent to a PE before what is sent to it afterwards, whatever kinds of
 * symmetric memory they are in and however they are sent; quiet completes it, for every PE to see.
 */
#include "conformance.h"

enum { kRounds = 20, kFlagOffset = kPlaceBytes - 256, kMost = kFlagOffset - 64 };

static int to, from;
static uint64_t* consumed; /* what the next PE is done with; in the heap */

static long* flag_in(const struct place* place) {
  return (long*)(void*)(place->bytes + kFlagOffset);
}
static long* counter_in(const struct place* place) {
  return flag_in(place) + 8;
}

/* The next round may overwrite what this one put. */
static void let_go(uint64_t round) {
  shmem_signal_set(consumed, round, from);
  (void)shmem_signal_wait_until(consumed, SHMEM_CMP_GE, round);
}

static void start(const struct place* data, const struct place* flags) {
  memset(data->bytes, 0, kMost);
  *flag_in(flags) = 0;
  *counter_in(data) = 0;
  *consumed = 0;
  shmem_barrier_all();
}

enum way { kByP, kByPut, kBySet, kByAdd, kBySignal, kWays };

static void raise_flag(enum way way, const struct place* flags, long value) {
  long* flag = flag_in(flags);
  switch (way) {
    case kByP:
      shmem_long_p(flag, value, to);
      return;
    case kByPut:
      shmem_long_put(flag, &value, 1, to);
      return;
    case kBySet:
      shmem_long_atomic_set(flag, value, to);
      return;
    case kByAdd:
      shmem_long_atomic_add(flag, 1, to);
      return;
    default:
      shmem_signal_set((uint64_t*)(void*)flag, (uint64_t)value, to);
  }
}

/* The bytes of the round, and one step of the counter. */
static void send(const struct place* data, unsigned char* outgoing, size_t bytes, bool nbi,
                 uint64_t round, long step) {
  t_fill(outgoing, bytes, t_key(t_me, to, round));
  if (nbi) {
    shmem_putmem_nbi(data->bytes, outgoing, bytes, to);
  } else {
    shmem_putmem(data->bytes, outgoing, bytes, to);
  }
  shmem_long_atomic_add(counter_in(data), step, to);
}

static void fence_orders(const struct place* data, const struct place* flags, size_t bytes,
                         bool nbi, enum way way) {
  static unsigned char outgoing[kMost];
  start(data, flags);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    send(data, outgoing, bytes, nbi, round, 3);
    shmem_fence();
    raise_flag(way, flags, (long)round);
    shmem_long_wait_until(flag_in(flags), SHMEM_CMP_GE, (long)round);
    const size_t wrong = t_differs(data->bytes, bytes, t_key(from, t_me, round));
    const long count = *counter_in(data);
    t_check(wrong == bytes && count == 3 * (long)round,
            "round %d, %zu bytes to %s, %s, flag %d in %s: flag before byte %zu; counter %ld",
            (int)round, bytes, data->name, nbi ? "nbi" : "blocking", (int)way, flags->name, wrong,
            count);
    if (nbi) shmem_quiet(); /* the source is filled anew */
    let_go(round);
  }
  shmem_barrier_all();
}

/*
 * After quiet a third PE may be told, and finds the data: the PE behind the target reads them from
 * the target.
 */
static void quiet_is_for_everybody(const struct place* data, const struct place* flags,
                                   size_t bytes, bool nbi) {
  static unsigned char outgoing[kMost];
  static unsigned char incoming[kMost];
  const int third = (t_me + 2) % t_pes;
  const int first = (t_me + 2 * t_pes - 2) % t_pes;
  start(data, flags);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    send(data, outgoing, bytes, nbi, round, 5);
    shmem_quiet();
    shmem_long_p(flag_in(flags), (long)round, third);
    shmem_long_wait_until(flag_in(flags), SHMEM_CMP_GE, (long)round);
    shmem_getmem(incoming, data->bytes, bytes, from);
    const long count = shmem_long_g(counter_in(data), from);
    const size_t wrong = t_differs(incoming, bytes, t_key(first, from, round));
    t_check(wrong == bytes && count == 5 * (long)round,
            "round %d, %zu bytes to %s, %s: a third PE sees byte %zu wrong; counter %ld",
            (int)round, bytes, data->name, nbi ? "nbi" : "blocking", wrong, count);
    shmem_barrier_all();
  }
}

/* What this PE has put it gets back behind quiet, and an nbi get has its bytes. */
static void quiet_then_get(const struct place* data, size_t bytes) {
  static unsigned char outgoing[kMost];
  static unsigned char incoming[2][kMost];
  start(data, data);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    t_fill(outgoing, bytes, t_key(t_me, to, 500 + round));
    shmem_putmem_nbi(data->bytes, outgoing, bytes, to);
    shmem_quiet();
    shmem_getmem(incoming[0], data->bytes, bytes, to);
    shmem_getmem_nbi(incoming[1], data->bytes, bytes, to);
    shmem_quiet();
    for (int i = 0; i < 2; ++i) {
      const size_t wrong = t_differs(incoming[i], bytes, t_key(t_me, to, 500 + round));
      t_check(wrong == bytes, "round %d: %s behind quiet of %zu bytes in %s: byte %zu is wrong",
              (int)round, i == 0 ? "get" : "get_nbi", bytes, data->name, wrong);
    }
  }
  shmem_barrier_all();
}

/* Fences to many PEs at once: the order holds for each of them. */
static void fence_orders_for_each_pe(const struct place* data, const struct place* flags) {
  enum { kBytes = 512 };
  static unsigned char outgoing[kMaxPes][kBytes];
  long* flag = flag_in(flags);
  memset(flag, 0, kMaxPes * sizeof *flag);
  memset(data->bytes, 0, kMaxPes * kBytes);
  for (int pe = 0; pe < t_pes; ++pe) t_fill(outgoing[pe], kBytes, t_key(t_me, pe, 77));
  shmem_barrier_all();
  for (int step = 0; step < t_pes; ++step) {
    const int pe = (t_me + step) % t_pes;
    shmem_putmem_nbi(data->bytes + t_me * kBytes, outgoing[pe], kBytes, pe);
  }
  shmem_fence();
  for (int step = 0; step < t_pes; ++step) shmem_long_p(&flag[t_me], 1, (t_me + step) % t_pes);
  for (int pe = 0; pe < t_pes; ++pe) {
    shmem_long_wait_until(&flag[pe], SHMEM_CMP_EQ, 1);
    const size_t wrong = t_differs(data->bytes + pe * kBytes, kBytes, t_key(pe, t_me, 77));
    t_check(wrong == kBytes, "data in %s, flag in %s: the flag of PE %d came before byte %zu",
            data->name, flags->name, pe, wrong);
  }
  shmem_barrier_all();
}

int main(void) {
  t_start();
  t_make_places();
  to = (t_me + 1) % t_pes;
  from = (t_me + t_pes - 1) % t_pes;
  consumed = shmem_calloc(1, sizeof *consumed);
  static const size_t sizes[] = {8, 1000, 20000, kMost};
  for (T_EACH_PLACE(data)) {
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; ++s) {
      for (T_EACH_PLACE(flags)) {
        for (enum way way = kByP; way < kWays; ++way) {
          fence_orders(data, flags, sizes[s], (way + s) % 2 == 0, way);
        }
      }
      quiet_is_for_everybody(data, &t_places[s % 3], sizes[s], s % 2 == 0);
      quiet_then_get(data, sizes[s]);
    }
    for (T_EACH_PLACE(flags)) fence_orders_for_each_pe(data, flags);
  }
  return t_finish();
}
