/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=1,2,3,4,7 */
/*
 * 9.10: a put with signal updates the signal after its own payload, whichever kinds of symmetric
 * memory the two are in; signal operations are atomic and of 8 bytes.
 */
#include "families.h"

enum { kElements = 17, kSignalOffset = kPlaceBytes - 4096, kRounds = 100 };

/* One signal word for each sender, between two that nobody writes. */
static uint64_t* signal_word(const struct place* place, int sender) {
  return (uint64_t*)(void*)(place->bytes + kSignalOffset) + 1 + 2 * sender;
}

static unsigned char* payload(const struct place* place, int sender) {
  return place->bytes + (size_t)sender * kElements * 16;
}

static void check_payload(const struct family* family, const struct place* data, int sender,
                          uint64_t key, const char* what) {
  const size_t bytes = kElements * family->size;
  const size_t wrong = t_differs(payload(data, sender), bytes, key);
  t_check(wrong == bytes, "%s %s to %s: the signal came before byte %zu", family->name, what,
          data->name, wrong);
}

static void set_then_add(size_t f, const struct place* data, const struct place* signals) {
  static unsigned char sources[2][kMaxPes][kElements * 16];
  const struct family* family = &t_families[f];
  const size_t bytes = kElements * family->size;
  const uint64_t first = t_key(0, 0, f) | 1u << 31; /* more than 32 bits, the same everywhere */
  for (int pe = 0; pe < t_pes; ++pe) {
    *signal_word(signals, pe) = 0;
    t_fill(sources[0][pe], bytes, t_key(t_me, pe, f));
    t_fill(sources[1][pe], bytes, t_key(t_me, pe, f + 1000));
  }
  memset(data->bytes, 0, (size_t)t_pes * kElements * 16);
  shmem_barrier_all();
  for (int step = 0; step < t_pes; ++step) {
    const int pe = (t_me + step) % t_pes;
    family->put_signal(payload(data, t_me), sources[0][pe], kElements, signal_word(signals, t_me),
                       first, SHMEM_SIGNAL_SET, pe);
  }
  for (int pe = 0; pe < t_pes; ++pe) {
    const uint64_t seen = shmem_signal_wait_until(signal_word(signals, pe), SHMEM_CMP_NE, 0);
    t_check(seen == first, "%s put_signal SET in %s: the signal is %#llx", family->name,
            signals->name, (unsigned long long)seen);
    check_payload(family, data, pe, t_key(pe, t_me, f), "put_signal SET");
  }
  shmem_barrier_all();
  for (int step = 0; step < t_pes; ++step) {
    const int pe = (t_me + step) % t_pes;
    family->put_signal_nbi(payload(data, t_me), sources[1][pe], kElements,
                           signal_word(signals, t_me), 3, SHMEM_SIGNAL_ADD, pe);
  }
  for (int pe = 0; pe < t_pes; ++pe) {
    const uint64_t seen = shmem_signal_wait_until(signal_word(signals, pe), SHMEM_CMP_NE, first);
    t_check(seen == first + 3, "%s put_signal_nbi ADD in %s: the signal is %#llx", family->name,
            signals->name, (unsigned long long)seen);
    check_payload(family, data, pe, t_key(pe, t_me, f + 1000), "put_signal_nbi ADD");
  }
  shmem_barrier_all();
}

/* The signal goes without a payload too, and beside it nothing is written. */
static void nothing_but_the_signal(size_t f, const struct place* data,
                                   const struct place* signals) {
  const struct family* family = &t_families[f];
  memset(data->bytes, 0xc3, (size_t)t_pes * kElements * 16);
  memset(signals->bytes + kSignalOffset, 0xc3, (2 * kMaxPes + 2) * sizeof(uint64_t));
  for (int pe = 0; pe < t_pes; ++pe) *signal_word(signals, pe) = 5;
  shmem_barrier_all();
  for (int pe = 0; pe < t_pes; ++pe) {
    family->put_signal(NULL, NULL, 0, signal_word(signals, t_me), 70, SHMEM_SIGNAL_SET, pe);
    shmem_quiet();
    family->put_signal(payload(data, 0), NULL, 0, signal_word(signals, t_me), 8, SHMEM_SIGNAL_ADD,
                       pe);
    family->put_signal_nbi(NULL, NULL, 0, signal_word(signals, t_me), 1, SHMEM_SIGNAL_ADD, pe);
  }
  shmem_barrier_all();
  for (int pe = 0; pe < t_pes; ++pe) {
    const uint64_t seen = shmem_signal_fetch(signal_word(signals, pe));
    t_check(seen == 79, "%s: signals without payload in %s gave %llu, not 79", family->name,
            signals->name, (unsigned long long)seen);
    t_check(t_is_all(signal_word(signals, pe) + 1, 8, 0xc3) &&
                t_is_all(signal_word(signals, pe) - 1, 8, 0xc3),
            "%s: words beside the signal in %s were written", family->name, signals->name);
  }
  t_check(t_is_all(data->bytes, (size_t)t_pes * kElements * 16, 0xc3),
          "%s: a payload of nothing in %s wrote", family->name, data->name);
  shmem_barrier_all();
}

/* Round after round with no barrier: each payload must be there when its signal is. */
static void rounds(const struct place* data, const struct place* signals, size_t bytes, bool nbi) {
  static unsigned char source[kSignalOffset];
  const int to = (t_me + 1) % t_pes;
  const int from = (t_me + t_pes - 1) % t_pes;
  uint64_t* arrived = signal_word(signals, 0);
  uint64_t* consumed = signal_word(signals, 1);
  *arrived = *consumed = 0;
  shmem_barrier_all();
  for (uint64_t round = 1; round <= kRounds; ++round) {
    t_fill(source, bytes, t_key(t_me, to, round));
    if (nbi) {
      shmem_putmem_signal_nbi(data->bytes, source, bytes, arrived, round, SHMEM_SIGNAL_SET, to);
    } else {
      shmem_putmem_signal(data->bytes, source, bytes, arrived, round, SHMEM_SIGNAL_SET, to);
    }
    const uint64_t seen = shmem_signal_wait_until(arrived, SHMEM_CMP_GE, round);
    const size_t wrong = t_differs(data->bytes, bytes, t_key(from, t_me, round));
    t_check(seen == round && wrong == bytes,
            "round %llu of %zu bytes, data in %s, signal in %s: signal %llu, byte %zu is wrong",
            (unsigned long long)round, bytes, data->name, signals->name, (unsigned long long)seen,
            wrong);
    shmem_signal_add(consumed, 1, from);
    if (nbi) shmem_quiet();
    (void)shmem_signal_wait_until(consumed, SHMEM_CMP_EQ, round);
  }
  shmem_barrier_all();
}

static void large_payload(const struct place* signals) {
  enum { kLarge = 1024 * 1024 + 3 };
  static unsigned char in_bss[kLarge];
  unsigned char* in_heap = shmem_malloc(kLarge);
  unsigned char* source = malloc(kLarge);
  const int to = (t_me + 1) % t_pes;
  const int from = (t_me + t_pes - 1) % t_pes;
  *signal_word(signals, 0) = 0;
  t_fill(source, kLarge, t_key(t_me, to, 9));
  shmem_barrier_all();
  unsigned char* const dests[] = {in_heap, in_bss, in_heap, in_bss};
  for (uint64_t i = 0; i < 4; ++i) {
    memset(dests[i], 0, kLarge);
    shmem_barrier_all();
    if (i < 2) {
      shmem_putmem_signal(dests[i], source, kLarge, signal_word(signals, 0), 1, SHMEM_SIGNAL_ADD,
                          to);
    } else {
      shmem_putmem_signal_nbi(dests[i], source, kLarge, signal_word(signals, 0), 1,
                              SHMEM_SIGNAL_ADD, to);
    }
    (void)shmem_signal_wait_until(signal_word(signals, 0), SHMEM_CMP_EQ, i + 1);
    const size_t wrong = t_differs(dests[i], kLarge, t_key(from, t_me, 9));
    t_check(wrong == kLarge, "large payload %llu, signal in %s: byte %zu is wrong",
            (unsigned long long)i, signals->name, wrong);
    shmem_barrier_all();
  }
  free(source);
  shmem_free(in_heap);
}

/* All PEs add to one word of each PE; SET replaces all 64 bits. */
static void updates_are_atomic(const struct place* signals) {
  *signal_word(signals, 0) = 1;
  shmem_barrier_all();
  for (int i = 0; i < kRounds; ++i) {
    for (int pe = 0; pe < t_pes; ++pe) {
      shmem_signal_add(signal_word(signals, 0), (uint64_t)1 << 33 | 1, pe);
    }
  }
  shmem_barrier_all();
  const uint64_t sum = shmem_signal_fetch(signal_word(signals, 0));
  t_check(sum == ((uint64_t)1 << 33 | 1) * kRounds * (unsigned)t_pes + 1,
          "signals in %s add to %#llx", signals->name, (unsigned long long)sum);
  shmem_barrier_all();
  const int to = (t_me + 1) % t_pes;
  const int from = (t_me + t_pes - 1) % t_pes;
  shmem_signal_set(signal_word(signals, 0), t_key(t_me, to, 1), to);
  shmem_barrier_all();
  t_check(shmem_signal_fetch(signal_word(signals, 0)) == t_key(from, t_me, 1),
          "signal_set in %s: not what PE %d set", signals->name, from);
  shmem_barrier_all();
}

int main(void) {
  t_start();
  t_make_places();
  for (size_t f = 0; f < kFamilies; ++f) {
    for (T_EACH_PLACE(data)) {
      for (T_EACH_PLACE(signals)) set_then_add(f, data, signals);
      nothing_but_the_signal(f, data, data == t_places ? data + 1 : t_places);
    }
  }
  for (T_EACH_PLACE(signals)) {
    for (T_EACH_PLACE(data)) {
      rounds(data, signals, 8, false);
      rounds(data, signals, 100, true);
      rounds(data, signals, 20001, false);
      rounds(data, signals, 50000, true);
    }
    large_payload(signals);
    updates_are_atomic(signals);
  }
  return t_finish();
}
