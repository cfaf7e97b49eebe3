/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 9.11: wait_until and test of every type compare as asked, in the signedness of the type and in
 * its width; they return for the update of a peer, and what the peer ordered before it is there.
 */
#include "conformance.h"

static const char* const cmp_names[] = {"EQ", "NE", "GT", "LE", "LT", "GE"};
static const int cmps[] = {SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT,
                           SHMEM_CMP_LE, SHMEM_CMP_LT, SHMEM_CMP_GE};
enum { kCmps = 6, kPayload = 64 };

#define T_EACH_TYPE(X) SHMEM_I_AMO_STD(X, ) SHMEM_I_P2P_SHORT(X, )

#define TEST(NAME, TYPE, ARG)                                                                      \
  static bool holds_##NAME(int cmp, TYPE a, TYPE b) {                                              \
    switch (cmp) { /* the constants are usable as case labels */                                   \
      case SHMEM_CMP_EQ:                                                                           \
        return a == b;                                                                             \
      case SHMEM_CMP_NE:                                                                           \
        return a != b;                                                                             \
      case SHMEM_CMP_GT:                                                                           \
        return a > b;                                                                              \
      case SHMEM_CMP_LE:                                                                           \
        return a <= b;                                                                             \
      case SHMEM_CMP_LT:                                                                           \
        return a < b;                                                                              \
      default:                                                                                     \
        return a >= b;                                                                             \
    }                                                                                              \
  }                                                                                                \
  struct words_##NAME {                                                                            \
    TYPE before, word, after;                                                                      \
  };                                                                                               \
                                                                                                   \
  /* All ones is -1 or the largest number; the highest bit alone is the smallest or just large. */ \
  static void table_##NAME(const struct place* place) {                                            \
    struct words_##NAME* mine = (void*)place->bytes;                                               \
    const TYPE high = (TYPE)((uint64_t)1 << (8 * sizeof(TYPE) - 1));                               \
    const TYPE values[] = {0, 1, 2, (TYPE)-1, (TYPE)-2, high, (TYPE)~high, 100};                   \
    memset(mine, 0xff, sizeof *mine);                                                              \
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {                                \
      mine->word = values[i];                                                                      \
      for (size_t j = 0; j < sizeof values / sizeof values[0]; ++j) {                              \
        for (int c = 0; c < kCmps; ++c) {                                                          \
          const bool wanted = holds_##NAME(cmps[c], values[i], values[j]);                         \
          const int got = shmem_##NAME##_test(&mine->word, cmps[c], values[j]);                    \
          t_check(got == wanted, "%s test in %s: %.17g %s %.17g gives %d", #NAME, place->name,     \
                  (double)values[i], cmp_names[c], (double)values[j], got);                        \
          if (wanted) shmem_##NAME##_wait_until(&mine->word, cmps[c], values[j]);                  \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
                                                                                                   \
  /* From a value that does not compare to one that does, by a peer, behind its payload. */        \
  static void update_##NAME(const struct place* place, int c, bool by_test, TYPE start,            \
                            TYPE final, TYPE wanted) {                                             \
    struct words_##NAME* mine = (void*)place->bytes;                                               \
    unsigned char* payload = t_places[c % 3].bytes + 4096;                                         \
    const int to = (t_me + 1) % t_pes;                                                             \
    const int from = (t_me + t_pes - 1) % t_pes;                                                   \
    mine->word = start;                                                                            \
    memset(payload, 0, kPayload);                                                                  \
    t_check(shmem_##NAME##_test(&mine->word, cmps[c], wanted) == 0, "%s %s holds too early",       \
            #NAME, cmp_names[c]);                                                                  \
    shmem_barrier_all();                                                                           \
    unsigned char outgoing[kPayload];                                                              \
    t_fill(outgoing, kPayload, t_key(t_me, to, sizeof(TYPE) + (unsigned)c));                       \
    if (t_key(t_me, c, sizeof(TYPE)) % 16 == 0) t_sleep_us(300);                                   \
    shmem_putmem(payload, outgoing, kPayload, to);                                                 \
    shmem_fence();                                                                                 \
    shmem_##NAME##_p(&mine->word, final, to);                                                      \
    if (by_test) {                                                                                 \
      while (!shmem_##NAME##_test(&mine->word, cmps[c], wanted)) {                                 \
      }                                                                                            \
    } else {                                                                                       \
      shmem_##NAME##_wait_until(&mine->word, cmps[c], wanted);                                     \
    }                                                                                              \
    const size_t wrong =                                                                           \
        t_differs(payload, kPayload, t_key(from, t_me, sizeof(TYPE) + (unsigned)c));               \
    t_check(mine->word == final && wrong == kPayload,                                              \
            "%s %s in %s: word %.17g, byte %zu of what was put before is wrong", #NAME,            \
            cmp_names[c], place->name, (double)mine->word, wrong);                                 \
    shmem_barrier_all();                                                                           \
  }                                                                                                \
  static void updates_##NAME(const struct place* place) {                                          \
    const TYPE ones = (TYPE)-1;                                                                    \
    const bool is_signed = ones < (TYPE)1;                                                         \
    for (int by_test = 0; by_test < 2; ++by_test) {                                                \
      update_##NAME(place, 0, by_test, 3, ones, ones);                                             \
      update_##NAME(place, 1, by_test, ones, 5, ones);                                             \
      update_##NAME(place, 2, by_test, is_signed ? ones : 0, is_signed ? 1 : ones,                 \
                    is_signed ? 0 : 7);                                                            \
      update_##NAME(place, 3, by_test, is_signed ? 1 : ones, is_signed ? ones : 7,                 \
                    is_signed ? 0 : 7);                                                            \
      update_##NAME(place, 4, by_test, is_signed ? 1 : ones, is_signed ? ones : 6,                 \
                    is_signed ? 0 : 7);                                                            \
      update_##NAME(place, 5, by_test, is_signed ? ones : 6, is_signed ? 0 : ones,                 \
                    is_signed ? 0 : 7);                                                            \
    }                                                                                              \
  }
T_EACH_TYPE(TEST)

/* Only the last of many updates satisfies, and they come from all PEs. */
#define TEST_COUNT(NAME, TYPE, ARG)                                                             \
  static void counted_##NAME(const struct place* place) {                                       \
    enum { kEach = 20 };                                                                        \
    TYPE* word = (void*)place->bytes;                                                           \
    *word = 0;                                                                                  \
    shmem_barrier_all();                                                                        \
    for (int i = 0; i < kEach; ++i) {                                                           \
      for (int pe = 0; pe < t_pes; ++pe) shmem_##NAME##_atomic_inc(word, pe);                   \
    }                                                                                           \
    shmem_##NAME##_wait_until(word, SHMEM_CMP_GE, (TYPE)(kEach * t_pes));                       \
    t_check(*word == (TYPE)(kEach * t_pes), "%s in %s: wait_until GE returned at %.17g", #NAME, \
            place->name, (double)*word);                                                        \
    shmem_barrier_all();                                                                        \
  }
SHMEM_I_AMO_STD(TEST_COUNT, )

int main(void) {
  t_start();
  t_make_places();
#define RUN(NAME, TYPE, ARG) \
  table_##NAME(place);       \
  updates_##NAME(place);
#define RUN_COUNT(NAME, TYPE, ARG) counted_##NAME(place);
  for (T_EACH_PLACE(place)) {
    T_EACH_TYPE(RUN)
    SHMEM_I_AMO_STD(RUN_COUNT, )
  }
  return t_finish();
}
