/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=1,2,3,4 */
/*
 * SHMEM_THREAD_MULTIPLE: threads of a PE communicate at the same time; one that waits stops none of
 * the others, and its wait ends by what another thread of the same PE does.
 */
#include <pthread.h>

#include "conformance.h"

enum { kThreads = 4, kRounds = 60, kAdds = 20000, kBytes = 3000 };

struct shared {
  long counter;
  long sum; /* on PE 0 */
  uint64_t arrived[kThreads];
  uint64_t checked[kThreads]; /* at the next PE */
  uint64_t turn[kThreads];
  unsigned char data[kThreads][kBytes];
};

static struct shared in_bss;
static struct shared* in_heap;
static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;

#define check_in_thread(CONDITION, ...)        \
  do {                                         \
    if (!(CONDITION)) {                        \
      pthread_mutex_lock(&failing);            \
      t_fail(__FILE__, __LINE__, __VA_ARGS__); \
      pthread_mutex_unlock(&failing);          \
    }                                          \
  } while (0)

static void on_threads(void* (*work)(void*)) {
  pthread_t threads[kThreads];
  int numbers[kThreads];
  shmem_barrier_all();
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0) shmem_global_exit(99);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  shmem_barrier_all();
}

/* Each thread has a stream of its own to the same thread of the next PE.
 */
static void stream(int thread, struct shared* shared) {
  static unsigned char buffers[kThreads][2][kBytes];
  const int to = (t_me + 1) % t_pes;
  const int from = (t_me + t_pes - 1) % t_pes;
  unsigned char* outgoing = buffers[thread][0];
  unsigned char* back = buffers[thread][1];
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const uint64_t occasion = round * 10 + (unsigned)thread;
    t_fill(outgoing, kBytes, t_key(t_me, to, occasion));
    shmem_putmem_signal(shared->data[thread], outgoing, kBytes, &shared->arrived[thread], 1,
                        SHMEM_SIGNAL_ADD, to);
    (void)shmem_signal_wait_until(&shared->arrived[thread], SHMEM_CMP_GE, round);
    size_t wrong = t_differs(shared->data[thread], kBytes, t_key(from, t_me, occasion));
    check_in_thread(wrong == kBytes, "thread %d, round %d: byte %zu is wrong", thread, (int)round,
                    wrong);
    shmem_signal_add(&shared->checked[thread], 1, from);
    /* Only this thread writes there, so it gets what it put. */
    shmem_quiet();
    shmem_getmem(back, shared->data[thread], kBytes, to);
    wrong = t_differs(back, kBytes, t_key(t_me, to, occasion));
    check_in_thread(wrong == kBytes, "thread %d, round %d: byte %zu that was got is wrong", thread,
                    (int)round, wrong);
    (void)shmem_signal_wait_until(&shared->checked[thread], SHMEM_CMP_GE, round);
  }
}

static void* stream_in_heap(void* number) {
  stream(*(int*)number, in_heap);
  return NULL;
}

static void* stream_in_bss(void* number) {
  stream(*(int*)number, &in_bss);
  return NULL;
}

/* Thread n waits for thread n - 1 of its own PE and of the PE before. */
static void* pass_on(void* number) {
  const int thread = *(int*)number;
  const int next = (thread + 1) % kThreads;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    if (thread != 0) {
      shmem_uint64_wait_until(&in_bss.turn[thread], SHMEM_CMP_GE, round);
      shmem_uint64_wait_until(&in_heap->turn[thread], SHMEM_CMP_GE, round);
    }
    shmem_uint64_atomic_inc(&in_bss.turn[next], t_me);
    shmem_uint64_atomic_inc(&in_heap->turn[next], (t_me + 1) % t_pes);
    if (thread == 0) {
      shmem_uint64_wait_until(&in_bss.turn[0], SHMEM_CMP_GE, round);
      shmem_uint64_wait_until(&in_heap->turn[0], SHMEM_CMP_GE, round);
    }
  }
  return NULL;
}

/* All threads of all PEs add to the counters of all PEs, with and without looking at them. */
static void* count(void* number) {
  for (int i = 0; i < kAdds; ++i) {
    const int pe = (i + *(int*)number) % t_pes;
    shmem_long_atomic_inc(&in_heap->counter, pe);
    const long before = shmem_long_atomic_fetch_add(&in_bss.counter, 1, pe);
    check_in_thread(before >= i / t_pes, "a counter is at %ld after %d additions", before, i);
  }
  return NULL;
}

/* The sum over the PEs: a PE's share depends on where its threads began. */
static void check_counter(const long* counter, long* sum, const char* where) {
  shmem_long_atomic_add(sum, *counter, 0);
  shmem_barrier_all();
  const long wanted = (long)t_pes * kThreads * kAdds;
  t_check(t_me != 0 || *sum == wanted, "threads counted to %ld in the %s, not %ld", *sum, where,
          wanted);
}

int main(void) {
  int provided = -1;
  if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0) return 99;
  t_start(); /* counts one init more */
  t_check(provided == SHMEM_THREAD_MULTIPLE, "level %d provided", provided);
  in_heap = shmem_calloc(1, sizeof *in_heap);
  on_threads(stream_in_heap);
  on_threads(stream_in_bss);
  on_threads(pass_on);
  on_threads(count);
  check_counter(&in_heap->counter, &in_heap->sum, "heap");
  check_counter(&in_bss.counter, &in_bss.sum, ".bss");
  shmem_finalize();
  return t_finish();
}
