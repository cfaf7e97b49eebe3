/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=1,2,3,4,7,16 */
/*
 * 9.1: init and finalize count, nest, and start again; a finalize that is not the last is a full
 * barrier; the last one completes what is under way; queries answer at any time.
 */
#include <pthread.h>

#include "conformance.h"

enum { kGenerations = 4 };

static long in_data[kMaxPes] = {-1};
static long in_bss[kMaxPes];
static int visitors;

static int initialized(void) {
  int answer = -1;
  shmem_query_initialized(&answer);
  return answer;
}

static void* ask(void* answer) {
  *(int*)answer = initialized();
  return NULL;
}

static int initialized_in_a_thread(void) {
  pthread_t thread;
  int answer = -1;
  if (pthread_create(&thread, NULL, ask, &answer) == 0) pthread_join(thread, NULL);
  return answer;
}

static void check_levels(void) {
  static const int levels[] = {SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED,
                               SHMEM_THREAD_MULTIPLE};
  for (int i = 0; i < 4; ++i) {
    t_check(i == 0 || levels[i] > levels[i - 1], "thread levels do not increase");
    int provided = -1;
    t_check(shmem_init_thread(levels[i], &provided) == 0, "init_thread of level %d fails",
            levels[i]);
    t_check(provided >= levels[i], "level %d provided, %d asked for", provided, levels[i]);
    int queried = -1;
    shmem_query_thread(&queried);
    t_check(queried == provided, "level %d provided, %d told", provided, queried);
  }
  for (int i = 0; i < 4; ++i) shmem_finalize();
}

/* Everybody has a number of its own, and PE 0 can count them. */
static void check_numbers(void) {
  t_check(t_pes >= 1 && t_me >= 0 && t_me < t_pes, "PE %d of %d", t_me, t_pes);
  visitors = 0;
  shmem_barrier_all();
  const int before = shmem_int_atomic_fetch_add(&visitors, 1 << t_me, 0);
  t_check((before >> t_me & 1) == 0, "two PEs have number %d", t_me);
  shmem_barrier_all();
  t_check(t_me != 0 || visitors == (1 << t_pes) - 1, "the PEs that came are %#x", visitors);
  shmem_barrier_all();
}

static void exchange(long generation) {
  long* heap = shmem_calloc((size_t)t_pes, sizeof *heap);
  if (heap == NULL) shmem_global_exit(1);
  for (int pe = 0; pe < t_pes; ++pe) {
    const long value = 1000 * generation + 10 * pe + t_me;
    shmem_long_p(&heap[t_me], value, pe);
    shmem_long_p(&in_data[t_me], value, pe);
    shmem_long_p(&in_bss[t_me], value, pe);
  }
  shmem_barrier_all();
  for (int pe = 0; pe < t_pes; ++pe) {
    const long value = 1000 * generation + 10 * t_me + pe;
    t_check(heap[pe] == value && in_data[pe] == value && in_bss[pe] == value,
            "generation %ld: PE %d put %ld, %ld, %ld", generation, pe, heap[pe], in_data[pe],
            in_bss[pe]);
  }
  shmem_barrier_all();
}

/* A finalize that is undone by no init yet: the barrier of 9.1.4, and memory stays. */
static void inner_finalize_is_a_barrier(long* heap) {
  static long source;
  const int to = (t_me + 1) % t_pes;
  const int from = (t_me + t_pes - 1) % t_pes;
  for (int round = 0; round < 10; ++round) {
    shmem_init();
    source = 50 * round + t_me;
    if (t_key(t_me, 0, (uint64_t)round) % 2 == 0) t_sleep_us(500);
    shmem_long_put_nbi(heap, &source, 1, to);
    shmem_long_put_nbi(&in_bss[0], &source, 1, to);
    shmem_finalize();
    t_check(*heap == 50 * round + from && in_bss[0] == 50 * round + from,
            "behind an inner finalize: %ld and %ld, not %d", *heap, in_bss[0], 50 * round + from);
    t_check(initialized() == 1 && shmem_my_pe() == t_me, "an inner finalize has ended OpenSHMEM");
    shmem_barrier_all();
  }
}

/* Static data outlives the library: what was sent before the last finalize is there after it. */
static void last_finalize_completes(long generation) {
  static long sources[kMaxPes];
  memset(in_bss, 0, sizeof in_bss);
  shmem_barrier_all();
  for (int pe = 0; pe < t_pes; ++pe) {
    sources[pe] = 77 * generation + pe;
    shmem_long_put_nbi(&in_bss[t_me], &sources[pe], 1, pe);
  }
  const int me = t_me;
  const int pes = t_pes;
  shmem_finalize();
  for (int pe = 0; pe < pes; ++pe)
    t_check(in_bss[pe] == 77 * generation + me, "PE %d's last put left %ld", pe, in_bss[pe]);
}

int main(void) {
  alarm(kPatienceSeconds);
  t_check(initialized() == 0 && initialized_in_a_thread() == 0, "initialized before init");
  int major = 0;
  int minor = 0;
  char name[SHMEM_MAX_NAME_LEN + 1];
  memset(name, 'x', sizeof name);
  shmem_info_get_version(&major, &minor);
  shmem_info_get_name(name);
  t_check(major == 1 && minor == 6 && major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION,
          "version %d.%d", major, minor);
  t_check(memchr(name, 0, SHMEM_MAX_NAME_LEN) != NULL && strcmp(name, SHMEM_VENDOR_STRING) == 0,
          "name without end");
  t_check(name[SHMEM_MAX_NAME_LEN] == 'x', "the name is longer than SHMEM_MAX_NAME_LEN");

  for (long generation = 1; generation <= kGenerations; ++generation) {
    t_start();
    t_check(initialized() == 1 && initialized_in_a_thread() == 1, "not initialized after init");
    check_numbers();
    check_levels();
    exchange(generation);
    long* heap = shmem_malloc(sizeof *heap);
    inner_finalize_is_a_barrier(heap);
    exchange(generation + 100);
    last_finalize_completes(generation);
    t_check(initialized() == 0 && initialized_in_a_thread() == 0, "initialized after finalize");
  }
  return t_status();
}
