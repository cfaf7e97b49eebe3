/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 9.8: each atomic operation of each type does what it says to the word of the PE that was named,
 * gives the value that was there, and touches nothing beside it; non-blocking forms too, by quiet.
 */
#include "conformance.h"

/* Full of bits for integers; exact numbers for float and double. */
#define T_VALUE(TYPE, KEY)                       \
  _Generic((TYPE)0, float                        \
           : (float)(int16_t)(KEY) / 4, double   \
           : (double)(int32_t)(KEY) / 8, default \
           : (TYPE)(KEY))

#define T_SAME(A, B) (memcmp(&(A), &(B), sizeof(A)) == 0)

static const char* place_name;

/* Two's complement arithmetic, whatever the type's own would do at its ends. */
#define T_PLUS(TYPE, A, B) ((TYPE)((uint64_t)(A) + (uint64_t)(B)))

/* Each PE works on the word of the next one, where nobody else does. */
#define T_BEGIN(NAME, TYPE)                              \
  struct guarded {                                       \
    TYPE before, word, after;                            \
  };                                                     \
  struct guarded* const symmetric = (void*)place->bytes; \
  TYPE* const word = &symmetric->word;                   \
  const char* const type = #NAME;                        \
  const int to = (t_me + 1) % t_pes;                     \
  const int from = (t_me + t_pes - 1) % t_pes;           \
  struct guarded result;                                 \
  memset(&result, 0xc3, sizeof result);                  \
  memset(symmetric, 0xc3, sizeof *symmetric);            \
  place_name = place->name;                              \
  shmem_barrier_all();

#define T_EXPECT(WHAT, GOT, WANTED)                                                              \
  do {                                                                                           \
    const __typeof__(GOT) got_ = (GOT), wanted_ = (WANTED);                                      \
    t_check(T_SAME(got_, wanted_), "%s %s in %s gives %.17g, not %.17g", type, WHAT, place_name, \
            (double)got_, (double)wanted_);                                                      \
  } while (0)

/* By quiet the value is in its variable, and the words beside that are as they were. */
#define T_EXPECT_RESULT(WHAT, WANTED)                                       \
  do {                                                                      \
    shmem_quiet();                                                          \
    T_EXPECT(WHAT, result.word, WANTED);                                    \
    t_check(t_is_all(&result.before, sizeof result.before, 0xc3) &&         \
                t_is_all(&result.after, sizeof result.after, 0xc3),         \
            "%s %s in %s wrote beside its result", type, WHAT, place_name); \
  } while (0)

/* The owner looks at its own word with its own loads. */
#define T_END(WANTED)                                                          \
  do {                                                                         \
    shmem_barrier_all();                                                       \
    T_EXPECT("at its owner", symmetric->word, WANTED);                         \
    t_check(t_is_all(&symmetric->before, sizeof symmetric->before, 0xc3) &&    \
                t_is_all(&symmetric->after, sizeof symmetric->after, 0xc3),    \
            "%s in %s: words beside the word were written", type, place_name); \
    shmem_barrier_all();                                                       \
  } while (0)

#define TEST_EXT(NAME, TYPE, ARG)                                               \
  static void ext_##NAME(const struct place* place) {                           \
    T_BEGIN(NAME, TYPE)                                                         \
    const TYPE a = T_VALUE(TYPE, t_key(t_me, to, 1));                           \
    const TYPE b = T_VALUE(TYPE, t_key(t_me, to, 2));                           \
    const TYPE c = T_VALUE(TYPE, t_key(t_me, to, 3));                           \
    shmem_##NAME##_atomic_set(word, a, to);                                     \
    shmem_quiet();                                                              \
    T_EXPECT("fetch after set", shmem_##NAME##_atomic_fetch(word, to), a);      \
    T_EXPECT("swap", shmem_##NAME##_atomic_swap(word, b, to), a);               \
    T_EXPECT("fetch after swap", shmem_##NAME##_atomic_fetch(word, to), b);     \
    shmem_##NAME##_atomic_fetch_nbi(&result.word, word, to);                    \
    T_EXPECT_RESULT("fetch_nbi", b);                                            \
    shmem_##NAME##_atomic_swap_nbi(&result.word, word, c, to);                  \
    T_EXPECT_RESULT("swap_nbi", b);                                             \
    T_EXPECT("fetch after swap_nbi", shmem_##NAME##_atomic_fetch(word, to), c); \
    T_END(T_VALUE(TYPE, t_key(from, t_me, 3)));                                 \
  }
SHMEM_I_AMO_EXT(TEST_EXT, )

#define TEST_STD(NAME, TYPE, ARG)                                                              \
  static void std_##NAME(const struct place* place) {                                          \
    T_BEGIN(NAME, TYPE)                                                                        \
    const TYPE a = (TYPE)t_key(t_me, to, 4);                                                   \
    const TYPE b = (TYPE)t_key(t_me, to, 5);                                                   \
    const TYPE all_ones = (TYPE)-1;                                                            \
    shmem_##NAME##_atomic_set(word, a, to);                                                    \
    shmem_quiet();                                                                             \
    T_EXPECT("compare_swap that misses",                                                       \
             shmem_##NAME##_atomic_compare_swap(word, T_PLUS(TYPE, a, 1), b, to), a);          \
    T_EXPECT("fetch after a miss", shmem_##NAME##_atomic_fetch(word, to), a);                  \
    T_EXPECT("compare_swap that hits", shmem_##NAME##_atomic_compare_swap(word, a, b, to), a); \
    T_EXPECT("fetch after a hit", shmem_##NAME##_atomic_fetch(word, to), b);                   \
    T_EXPECT("fetch_inc", shmem_##NAME##_atomic_fetch_inc(word, to), b);                       \
    shmem_##NAME##_atomic_inc(word, to);                                                       \
    shmem_quiet();                                                                             \
    T_EXPECT("fetch_add", shmem_##NAME##_atomic_fetch_add(word, a, to), T_PLUS(TYPE, b, 2));   \
    shmem_##NAME##_atomic_add(word, all_ones, to);                                             \
    shmem_quiet();                                                                             \
    TYPE now = T_PLUS(TYPE, T_PLUS(TYPE, a, b), 1);                                            \
    T_EXPECT("fetch after adds", shmem_##NAME##_atomic_fetch(word, to), now);                  \
    shmem_##NAME##_atomic_compare_swap_nbi(&result.word, word, T_PLUS(TYPE, now, 1), a, to);   \
    T_EXPECT_RESULT("compare_swap_nbi that misses", now);                                      \
    shmem_##NAME##_atomic_compare_swap_nbi(&result.word, word, now, all_ones, to);             \
    T_EXPECT_RESULT("compare_swap_nbi that hits", now);                                        \
    shmem_##NAME##_atomic_fetch_inc_nbi(&result.word, word, to); /* wraps to 0 */              \
    T_EXPECT_RESULT("fetch_inc_nbi", all_ones);                                                \
    shmem_##NAME##_atomic_fetch_add_nbi(&result.word, word, b, to);                            \
    T_EXPECT_RESULT("fetch_add_nbi", (TYPE)0);                                                 \
    T_EXPECT("fetch after nbi forms", shmem_##NAME##_atomic_fetch(word, to), b);               \
    T_END((TYPE)t_key(from, t_me, 5));                                                         \
  }
SHMEM_I_AMO_STD(TEST_STD, )

#define TEST_BIT(NAME, TYPE, ARG)                                             \
  static void bit_##NAME(const struct place* place) {                         \
    T_BEGIN(NAME, TYPE)                                                       \
    const TYPE a = (TYPE)t_key(t_me, to, 6);                                  \
    const TYPE b = (TYPE)t_key(t_me, to, 7);                                  \
    const TYPE c = (TYPE)t_key(t_me, to, 8);                                  \
    shmem_##NAME##_atomic_set(word, a, to);                                   \
    shmem_quiet();                                                            \
    TYPE now = a;                                                             \
    T_EXPECT("fetch_and", shmem_##NAME##_atomic_fetch_and(word, b, to), now); \
    now &= b;                                                                 \
    T_EXPECT("fetch_or", shmem_##NAME##_atomic_fetch_or(word, c, to), now);   \
    now |= c;                                                                 \
    T_EXPECT("fetch_xor", shmem_##NAME##_atomic_fetch_xor(word, a, to), now); \
    now ^= a;                                                                 \
    T_EXPECT("fetch after bits", shmem_##NAME##_atomic_fetch(word, to), now); \
    shmem_##NAME##_atomic_or(word, b, to);                                    \
    shmem_quiet();                                                            \
    now |= b;                                                                 \
    shmem_##NAME##_atomic_and(word, c, to);                                   \
    shmem_quiet();                                                            \
    now &= c;                                                                 \
    shmem_##NAME##_atomic_xor(word, b, to);                                   \
    shmem_quiet();                                                            \
    now ^= b;                                                                 \
    shmem_##NAME##_atomic_fetch_and_nbi(&result.word, word, a, to);           \
    T_EXPECT_RESULT("fetch_and_nbi", now);                                    \
    now &= a;                                                                 \
    shmem_##NAME##_atomic_fetch_or_nbi(&result.word, word, b, to);            \
    T_EXPECT_RESULT("fetch_or_nbi", now);                                     \
    now |= b;                                                                 \
    shmem_##NAME##_atomic_fetch_xor_nbi(&result.word, word, c, to);           \
    T_EXPECT_RESULT("fetch_xor_nbi", now);                                    \
    shmem_##NAME##_atomic_set(word, b, to);                                   \
    T_END((TYPE)t_key(from, t_me, 7));                                        \
  }
SHMEM_I_AMO_BIT(TEST_BIT, )

int main(void) {
  t_start();
  t_make_places();
#define RUN_EXT(NAME, TYPE, ARG) ext_##NAME(place);
#define RUN_STD(NAME, TYPE, ARG) std_##NAME(place);
#define RUN_BIT(NAME, TYPE, ARG) bit_##NAME(place);
  for (T_EACH_PLACE(place)) {
    SHMEM_I_AMO_EXT(RUN_EXT, )
    SHMEM_I_AMO_STD(RUN_STD, )
    SHMEM_I_AMO_BIT(RUN_BIT, )
  }
  return t_finish();
}
