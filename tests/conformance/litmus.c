/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=2,4 mpirun=no */
/*
 * litmus [--no-barrier] [--rounds N] [TEST...]: the memory order of puts and gets, by outcomes that
 * must not occur.
 *
 *   mp      message passing: put data, fence, put flag | see the flag, read the data. Forbidden:
 * flag without data. mp2     the same with data in .bss and the flag in the heap, which may travel
 * on different ways. mp64k   the same with 64 KiB of data in the heap. sb      store buffer: put x,
 * quiet, get y | put y, quiet, get x. Forbidden: both get the old value. iriw    independent reads
 * of independent writes, four PEs: put x | put y | get x, get y | get y, get x. Forbidden: the
 * readers see the writes in opposite orders.
 *
 * --no-barrier leaves fence and quiet out, to see that a test can fail; forbidden outcomes are then
 * only counted. Values are numbers of batches, so that nothing needs to be cleared: a word is old
 * or of this batch. One barrier a batch; within it the PEs run freely, each from its own place on,
 * so that they meet in all phases.
 */
#include "conformance.h"

enum { kBatch = 1024, kLarge = 64 * 1024, kDefaultRounds = 100000 };

static bool with_barrier = true;
static long rounds = kDefaultRounds;
static long *x, *y; /* words [kBatch] in the heap */
static long x_in_bss[kBatch];
static unsigned char* large; /* [kLarge] */
static unsigned char* seen;  /* [kBatch] what a reader of iriw saw */
static long batch;           /* number of the current batch, never used twice */
static uint64_t random_state;

static size_t draw(size_t below) {
  random_state = t_mix(random_state);
  return (size_t)(random_state % below);
}

static void fence(void) {
  if (with_barrier) shmem_fence();
}

static void quiet(void) {
  if (with_barrier) shmem_quiet();
}

static long load(const long* word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* Outcomes of all PEs, printed by PE 0. Returns how many of the forbidden one there were. */
static long tell(const char* test, const char* const names[4], int forbidden, const long own[4]) {
  static long sums[4];
  memset(sums, 0, sizeof sums);
  shmem_barrier_all();
  for (int i = 0; i < 4; ++i) {
    if (own[i] != 0) shmem_long_atomic_add(&sums[i], own[i], 0);
  }
  shmem_barrier_all();
  long all[4];
  shmem_long_get(all, sums, 4, 0);
  if (t_me == 0) {
    printf("%s%s: %ld rounds:", test, with_barrier ? "" : " without barrier",
           all[0] + all[1] + all[2] + all[3]);
    for (int i = 0; i < 4; ++i) {
      if (names[i] != NULL)
        printf(" %s %ld%s;", names[i], all[i], i == forbidden ? " (forbidden)" : "");
    }
    printf("\n");
    fflush(stdout);
  }
  shmem_barrier_all();
  return all[forbidden];
}

/* PEs work in pairs; one that is left over only joins the barriers. */
static int partner(void) {
  return (t_me ^ 1) < t_pes ? t_me ^ 1 : -1;
}

static long message_passing(const char* name, long* data) {
  static const char* const outcomes[4] = {"neither", "data only", "flag only", "both"};
  long count[4] = {0};
  const int peer = partner();
  for (long done = 0; done < rounds; done += kBatch) {
    ++batch;
    const bool is_writer = ((t_me + batch) & 1) == 0;
    shmem_barrier_all();
    for (size_t i = 0; peer >= 0 && i < kBatch; ++i) {
      if (is_writer) {
        shmem_long_p(&data[i], batch, peer);
        fence();
        shmem_long_p(&y[i], batch, peer);
        continue;
      }
      const int flag = shmem_long_test(&y[i], SHMEM_CMP_EQ, batch);
      ++count[2 * flag + (load(&data[i]) == batch)];
      if (flag) continue;
      /* Again at the moment when it comes; this look is not counted twice unless it is wrong. */
      shmem_long_wait_until(&y[i], SHMEM_CMP_EQ, batch);
      if (load(&data[i]) != batch) ++count[2];
    }
    shmem_barrier_all();
  }
  return tell(name, outcomes, 2, count);
}

static long large_message_passing(void) {
  static const char* const outcomes[4] = {NULL, NULL, "flag before all data", "both"};
  static unsigned char source[2][kLarge];
  long count[4] = {0};
  const int peer = partner();
  for (long round = 1; round <= rounds / 100; ++round) {
    const bool is_writer = ((t_me + round) & 1) == 0;
    const unsigned char value = (unsigned char)(round % 251);
    if (peer >= 0 && is_writer) {
      memset(source[round & 1], value, kLarge);
      shmem_putmem_nbi(large, source[round & 1], kLarge, peer);
      fence();
      shmem_long_p(&y[0], -round, peer);
    } else if (peer >= 0) {
      shmem_long_wait_until(&y[0], SHMEM_CMP_EQ, -round);
      ++count[2 + t_is_all(large, kLarge, value)];
    }
    shmem_barrier_all();
  }
  return tell("mp64k", outcomes, 2, count);
}

static long store_buffer(void) {
  static const char* const outcomes[4] = {"both old", "one new", "other new", "both new"};
  long count[4] = {0};
  const int peer = partner();
  const int second = t_me & 1;
  /* The value in the first partner's home or in the other one, in turns: the put is remote, or the
   * get. */
  for (long done = 0; done < rounds; done += kBatch) {
    ++batch;
    const int put_to = batch & 1 ? peer : t_me;
    const int get_from = batch & 1 ? t_me : peer;
    long* const written = second ? y : x;
    long* const read = second ? x : y;
    const size_t start = draw(8);
    shmem_barrier_all();
    for (size_t k = 0; peer >= 0 && k < kBatch; ++k) {
      const size_t i = (start + k) % kBatch;
      shmem_long_p(&written[i], batch, put_to);
      quiet();
      seen[i] = shmem_long_g(&read[i], get_from) == batch;
    }
    shmem_barrier_all();
    if (peer >= 0 && !second) {
      static unsigned char others[kBatch];
      shmem_getmem(others, seen, kBatch, peer);
      for (size_t i = 0; i < kBatch; ++i) ++count[2 * seen[i] + others[i]];
    }
  }
  return tell("sb", outcomes, 0, count);
}

static long independent_reads(void) {
  static const char* const outcomes[4] = {"opposite orders", "x first", "y first", "no order told"};
  long count[4] = {0};
  for (long done = 0; done < rounds; done += kBatch) {
    ++batch;
    const size_t start = draw(kBatch);
    shmem_barrier_all();
    for (size_t k = 0; k < kBatch; ++k) {
      const size_t i = (start + k) % kBatch;
      if (t_me == 0) shmem_long_p(&x[i], batch, 1);
      if (t_me == 1) shmem_long_p(&y[i], batch, 0);
      if (t_me == 2) {
        const bool first = shmem_long_g(&x[i], 1) == batch;
        seen[i] = first && shmem_long_g(&y[i], 0) != batch;
      }
      if (t_me == 3) {
        const bool first = shmem_long_g(&y[i], 0) == batch;
        seen[i] = first && shmem_long_g(&x[i], 1) != batch;
      }
    }
    shmem_barrier_all();
    if (t_me == 2) {
      static unsigned char others[kBatch];
      shmem_getmem(others, seen, kBatch, 3);
      for (size_t i = 0; i < kBatch; ++i) ++count[3 - seen[i] - 2 * others[i]];
    }
  }
  return tell("iriw", outcomes, 0, count);
}

static bool is_wanted(char** tests, int number, const char* name) {
  for (int i = 0; i < number; ++i) {
    if (strcmp(tests[i], name) == 0) return true;
  }
  return number == 0;
}

int main(int argc, char** argv) {
  int next = 1;
  bool rounds_given = false;
  for (; next < argc && strncmp(argv[next], "--", 2) == 0; ++next) {
    if (strcmp(argv[next], "--no-barrier") == 0) {
      with_barrier = false;
    } else if (strcmp(argv[next], "--rounds") == 0 && next + 1 < argc) {
      rounds = atol(argv[++next]);
      rounds_given = true;
    } else {
      fprintf(stderr, "usage: litmus [--no-barrier] [--rounds N] [mp|mp2|mp64k|sb|iriw]...\n");
      return 2;
    }
  }
  t_start();
  alarm(600);
  x = shmem_calloc(kBatch, sizeof *x);
  y = shmem_calloc(kBatch, sizeof *y);
  large = shmem_malloc(kLarge);
  seen = shmem_calloc(kBatch, 1);
  random_state = t_key(t_me, t_pes, (uint64_t)getpid());
  char** const tests = argv + next;
  const int number = argc - next;
  long forbidden = 0;
  if (is_wanted(tests, number, "mp")) forbidden += message_passing("mp", x);
  if (is_wanted(tests, number, "mp2")) forbidden += message_passing("mp2", x_in_bss);
  if (is_wanted(tests, number, "mp64k")) forbidden += large_message_passing();
  if (!rounds_given && shmem_ptr(x, t_pes - 1 - t_me) == NULL) rounds /= 5; /* a get is a message */
  if (is_wanted(tests, number, "sb")) forbidden += store_buffer();
  if (t_pes >= 4 && is_wanted(tests, number, "iriw")) forbidden += independent_reads();
  t_check(forbidden == 0 || !with_barrier, "%ld forbidden outcomes", forbidden);
  return t_finish();
}
