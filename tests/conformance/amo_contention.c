/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=1,2,3,4,7,16 */
/*
 * 9.8: operations of all PEs on the same words lose nothing: sums are exact, tickets are given
 * once, values that are swapped are conserved. Every PE also works on its own word, which no
 * transport stands in front of.
 */
#include "conformance.h"

/* More PEs make as much contention with fewer rounds; where an update takes no time it takes more
 * of them. */
enum { kUpdates = 120, kMoreInHeap = 100 };
static int rounds;

static int* seen; /* on PE 0: how often a ticket was drawn */
static const char* place_name;

static unsigned everybody(void) {
  return (unsigned)(t_pes * rounds);
}

#define T_SUM(TYPE, A, B) ((TYPE)((uint64_t)(A) + (uint64_t)(B)))

/* In rounds on the word of each PE in turn, each PE starting with another one. */
#define T_ALL_WORDS(BODY)                           \
  for (int round_ = 0; round_ < rounds; ++round_) { \
    for (int step_ = 0; step_ < t_pes; ++step_) {   \
      const int pe = (t_me + step_) % t_pes;        \
      BODY                                          \
    }                                               \
  }

#define T_BEGIN(TYPE)                             \
  struct words {                                  \
    TYPE guard, word, last;                       \
  };                                              \
  struct words* const mine = (void*)place->bytes; \
  TYPE* const word = &mine->word;                 \
  memset(mine, 0xc3, sizeof *mine);               \
  mine->word = 0;                                 \
  place_name = place->name;                       \
  shmem_barrier_all();

#define T_END(NAME, WHAT, WANTED)                                                             \
  do {                                                                                        \
    shmem_barrier_all();                                                                      \
    t_check(mine->word == (WANTED), "%s %s in %s: %.17g, not %.17g", #NAME, WHAT, place_name, \
            (double)mine->word, (double)(WANTED));                                            \
    t_check(t_is_all(&mine->guard, sizeof mine->guard, 0xc3) &&                               \
                t_is_all(&mine->last, sizeof mine->last, 0xc3),                               \
            "%s %s in %s: words beside the word were written", #NAME, WHAT, place_name);      \
    mine->word = 0;                                                                           \
    shmem_barrier_all();                                                                      \
  } while (0)

#define TEST_STD(NAME, TYPE, ARG)                                                                  \
  static void sums_##NAME(const struct place* place) {                                             \
    T_BEGIN(TYPE)                                                                                  \
    T_ALL_WORDS(shmem_##NAME##_atomic_inc(word, pe);)                                              \
    T_END(NAME, "inc", (TYPE)everybody());                                                         \
    T_ALL_WORDS(shmem_##NAME##_atomic_add(word, (TYPE)(t_me + 1), pe);)                            \
    T_END(NAME, "add", (TYPE)(everybody() * (unsigned)(t_pes + 1) / 2));                           \
    T_ALL_WORDS((void)shmem_##NAME##_atomic_fetch_add(word, (TYPE)-1, pe);)                        \
    T_END(NAME, "fetch_add", T_SUM(TYPE, 0, -(uint64_t)everybody()));                              \
    TYPE results[kMaxPes];                                                                         \
    T_ALL_WORDS(shmem_##NAME##_atomic_fetch_add_nbi(&results[pe], word, 2, pe);                    \
                if (step_ + 1 == t_pes) shmem_quiet();)                                            \
    T_END(NAME, "fetch_add_nbi", (TYPE)(2 * everybody()));                                         \
    T_ALL_WORDS(TYPE old = shmem_##NAME##_atomic_fetch(word, pe); for (;;) {                       \
      const TYPE now = shmem_##NAME##_atomic_compare_swap(word, old, T_SUM(TYPE, old, 1), pe);     \
      if (now == old) break;                                                                       \
      old = now;                                                                                   \
    })                                                                                             \
    T_END(NAME, "compare_swap", (TYPE)everybody());                                                \
  }                                                                                                \
  static void tickets_##NAME(const struct place* place) {                                          \
    T_BEGIN(TYPE)                                                                                  \
    if (t_me == 0) memset(seen, 0, everybody() * sizeof *seen);                                    \
    shmem_barrier_all();                                                                           \
    const int owner = t_pes - 1;                                                                   \
    TYPE previous = 0;                                                                             \
    for (int round = 0; round < rounds; ++round) {                                                 \
      const TYPE ticket = shmem_##NAME##_atomic_fetch_inc(word, owner);                            \
      t_check(round == 0 || ticket > previous, "%s fetch_inc in %s: ticket %.17g after %.17g",     \
              #NAME, place_name, (double)ticket, (double)previous);                                \
      previous = ticket;                                                                           \
      if ((uint64_t)ticket >= everybody()) {                                                       \
        t_check(false, "%s fetch_inc in %s: ticket %.17g", #NAME, place_name, (double)ticket);     \
        break;                                                                                     \
      }                                                                                            \
      shmem_int_atomic_inc(&seen[(size_t)ticket], 0);                                              \
    }                                                                                              \
    shmem_barrier_all();                                                                           \
    for (unsigned i = 0; t_me == 0 && i < everybody(); ++i) {                                      \
      t_check(seen[i] == 1, "%s fetch_inc in %s: ticket %u was drawn %d times", #NAME, place_name, \
              i, seen[i]);                                                                         \
    }                                                                                              \
    shmem_barrier_all();                                                                           \
  }
SHMEM_I_AMO_STD(TEST_STD, )

/* Two bits for each PE, so that others' bits are at risk in each operation. */
#define TEST_BIT(NAME, TYPE, ARG)                                                                  \
  static void bits_##NAME(const struct place* place) {                                             \
    T_BEGIN(TYPE)                                                                                  \
    const TYPE own = (TYPE)((TYPE)3 << (2 * t_me));                                                \
    const TYPE low = (TYPE)((TYPE)1 << (2 * t_me));                                                \
    TYPE all = 0;                                                                                  \
    for (int pe = 0; pe < t_pes; ++pe) all = (TYPE)(all | (TYPE)((TYPE)1 << (2 * pe)));            \
    T_ALL_WORDS(                                                                                   \
        TYPE before = shmem_##NAME##_atomic_fetch_or(word, own, pe);                               \
        t_check((before & own) == 0, "%s fetch_or in %s: own bits were set", #NAME, place_name);   \
        before = shmem_##NAME##_atomic_fetch_and(word, (TYPE)~own, pe); t_check(                   \
            (before & own) == own, "%s fetch_and in %s: own bits were lost", #NAME, place_name);   \
        before = shmem_##NAME##_atomic_fetch_xor(word, low, pe);                                   \
        t_check((before & own) == 0, "%s fetch_xor in %s: own bits were set", #NAME, place_name);  \
        shmem_##NAME##_atomic_and(word, (TYPE)~own, pe); shmem_quiet();)                           \
    T_ALL_WORDS(shmem_##NAME##_atomic_xor(word, own, pe); shmem_quiet();                           \
                shmem_##NAME##_atomic_or(word, low, pe); shmem_quiet();                            \
                shmem_##NAME##_atomic_and(word, (TYPE)(~own | low), pe); shmem_quiet();            \
                if (round_ + 1 < rounds) shmem_##NAME##_atomic_xor(word, low, pe); shmem_quiet();) \
    T_END(NAME, "bits", all);                                                                      \
  }
SHMEM_I_AMO_BIT(TEST_BIT, )

/* What comes out of a word is what somebody put in: the sum is conserved. */
#define TEST_EXT(NAME, TYPE, ARG)                                                               \
  static void swaps_##NAME(const struct place* place) {                                         \
    T_BEGIN(TYPE)                                                                               \
    static long put_in;                                                                         \
    static long came_out;                                                                       \
    if (t_me == 0) put_in = came_out = 0;                                                       \
    shmem_barrier_all();                                                                        \
    long in = 0;                                                                                \
    long out = 0;                                                                               \
    T_ALL_WORDS(                                                                                \
        const long value = 1 + t_me + round_ * t_pes; in += value; if (round_ % 2 == 0) {       \
          out += (long)shmem_##NAME##_atomic_swap(word, (TYPE)value, pe);                       \
        } else {                                                                                \
          TYPE before;                                                                          \
          shmem_##NAME##_atomic_swap_nbi(&before, word, (TYPE)value, pe);                       \
          shmem_quiet();                                                                        \
          out += (long)before;                                                                  \
        })                                                                                      \
    shmem_barrier_all();                                                                        \
    out += (long)mine->word;                                                                    \
    shmem_long_atomic_add(&put_in, in, 0);                                                      \
    shmem_long_atomic_add(&came_out, out, 0);                                                   \
    shmem_barrier_all();                                                                        \
    t_check(t_me != 0 || put_in == came_out, "%s swap in %s: %ld went in, %ld came out", #NAME, \
            place_name, put_in, came_out);                                                      \
    shmem_barrier_all();                                                                        \
  }
SHMEM_I_AMO_EXT(TEST_EXT, )

int main(void) {
  t_start();
  t_make_places();
  seen = shmem_malloc(kUpdates * kMoreInHeap * sizeof *seen);
  if (seen == NULL) shmem_global_exit(1);
#define RUN_STD(NAME, TYPE, ARG) \
  sums_##NAME(place);            \
  tickets_##NAME(place);
#define RUN_BIT(NAME, TYPE, ARG) bits_##NAME(place);
#define RUN_EXT(NAME, TYPE, ARG) swaps_##NAME(place);
  for (T_EACH_PLACE(place)) {
    const bool is_near = shmem_ptr(place->bytes, (t_me + 1) % t_pes) != NULL;
    rounds = kUpdates * (is_near ? kMoreInHeap : 1) / t_pes;
    SHMEM_I_AMO_STD(RUN_STD, )
    SHMEM_I_AMO_BIT(RUN_BIT, )
    SHMEM_I_AMO_EXT(RUN_EXT, )
  }
  return t_finish();
}
