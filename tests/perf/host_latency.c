/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_latency.c - what one OpenSHMEM call costs beside the machine's own instruction for it.
 *
 *   oshcc -O2 host_latency.c -o host_latency && oshrun -np 2 ./host_latency
 *
 * Builds with any OpenSHMEM of version 1.4 or later, so that libraries are compared by one program.
 * PE 0 and PE 1 are pinned to the first two cores they may use. Floor and library are timed in
 * turns, chunk by chunk; every line is metric  floor-min  floor-p50  library-min  library-p50
 * ratio-min  ratio-p50  (ns an operation) Floors use a plain shared mapping of both processes, made
 * outside the library.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <sched.h>
#include <shmem.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kChunks = 2000, kOps = 200, kBigBytes = 1 << 20, kBigChunks = 300 };

static int me;
static double floor_ns[kChunks], library_ns[kChunks];

/* The library's memory. */
static long* word;   /* symmetric, one line apart */
static char* big;    /* symmetric */
static char* source; /* private */

/* The floor's memory: one page shared by both processes. */
static struct page {
  _Atomic long flag[2][16];
  _Atomic long word[8];
  char big[kBigBytes];
} * page;

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void pin(int index) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return;
  if (CPU_COUNT(&set) == 1) return; /* the launcher has pinned us */
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set) || index-- != 0) continue;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    return;
  }
}

static void map_page(void) {
  static char name[64];
  char* symmetric_name = shmem_malloc(sizeof name);
  if (me == 0) {
    snprintf(name, sizeof name, "/host_latency.%ld", (long)getpid());
    shmem_putmem(symmetric_name, name, sizeof name, 0);
    shmem_putmem(symmetric_name, name, sizeof name, 1);
    int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *page) != 0) exit(1);
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
  }
  shmem_barrier_all();
  if (me == 1) {
    int fd = shm_open(symmetric_name, O_RDWR, 0);
    if (fd < 0) exit(1);
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
  }
  shmem_barrier_all();
  if (me == 0) shm_unlink(name);
  if (page == MAP_FAILED) exit(1);
  memset(page->big, me, sizeof page->big);
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void report(const char* metric, int chunks) {
  if (me != 0) return;
  qsort(floor_ns, (size_t)chunks, sizeof *floor_ns, compare);
  qsort(library_ns, (size_t)chunks, sizeof *library_ns, compare);
  double f0 = floor_ns[0], f50 = floor_ns[chunks / 2], l0 = library_ns[0],
         l50 = library_ns[chunks / 2];
  printf("%-22s %9.2f %9.2f %9.2f %9.2f %7.2f %7.2f\n", metric, f0, f50, l0, l50, l0 / f0,
         l50 / f50);
  fflush(stdout);
}

#define FULL_BARRIER() __asm__ volatile("lock; orl $0, -4(%%rsp)" ::: "memory", "cc")

static volatile long sink;

static void floor_store(int n) {
  for (int i = 0; i < n; ++i) atomic_store_explicit(&page->word[0], i, memory_order_relaxed);
}
static void library_p(int n) {
  for (int i = 0; i < n; ++i) shmem_long_p(word, i, 1);
}
static void floor_store_barrier(int n) {
  for (int i = 0; i < n; ++i) {
    atomic_store_explicit(&page->word[0], i, memory_order_relaxed);
    FULL_BARRIER();
  }
}
static void library_p_quiet(int n) {
  for (int i = 0; i < n; ++i) {
    shmem_long_p(word, i, 1);
    shmem_quiet();
  }
}
static void floor_load(int n) {
  long sum = 0;
  for (int i = 0; i < n; ++i) sum += atomic_load_explicit(&page->word[0], memory_order_relaxed);
  sink = sum;
}
static void library_g(int n) {
  long sum = 0;
  for (int i = 0; i < n; ++i) sum += shmem_long_g(word, 1);
  sink = sum;
}
static void library_get(int n) {
  long value = 0;
  for (int i = 0; i < n; ++i) shmem_getmem(&value, word, sizeof value, 1);
  sink = value;
}
static void floor_fetch_add(int n) {
  for (int i = 0; i < n; ++i) sink = atomic_fetch_add(&page->word[0], 1);
}
static void library_fetch_add(int n) {
  for (int i = 0; i < n; ++i) sink = shmem_long_atomic_fetch_add(word, 1, 1);
}
static void floor_copy(int n) {
  for (int i = 0; i < n; ++i) memcpy(page->big, source, kBigBytes);
}
static void library_put_quiet(int n) {
  for (int i = 0; i < n; ++i) {
    shmem_putmem(big, source, kBigBytes, 1);
    shmem_quiet();
  }
}

/*
 * Both PEs take part; every operation is a round trip. How long a line takes from core to core
 * depends on where the processor keeps it, so the floor uses the library's own words where it can.
 */
static _Atomic long* flag_of[2];
static void choose_flags(void) {
  for (int pe = 0; pe < 2; ++pe) flag_of[pe] = (_Atomic long*)shmem_ptr(word + 8, pe);
  if (flag_of[0] != NULL && flag_of[1] != NULL) return;
  for (int pe = 0; pe < 2; ++pe) flag_of[pe] = &page->flag[pe][0];
}
static long turn;
static void floor_round_trips(int n) {
  for (int i = 0; i < n; ++i) {
    long t = ++turn;
    if (me == 0) atomic_store_explicit(flag_of[1], t, memory_order_release);
    while (atomic_load_explicit(flag_of[me], memory_order_acquire) != t) {
    }
    if (me == 1) atomic_store_explicit(flag_of[0], t, memory_order_release);
  }
}
static void library_round_trips(int n) {
  for (int i = 0; i < n; ++i) {
    long t = ++turn;
    if (me == 0) shmem_long_p(word + 8, t, 1);
    shmem_long_wait_until(word + 8, SHMEM_CMP_EQ, t);
    if (me == 1) shmem_long_p(word + 8, t, 0);
  }
}
static void library_barriers(int n) {
  for (int i = 0; i < n; ++i) shmem_barrier_all();
}

typedef void (*body)(int n);

static void one_sided(const char* metric, int chunks, int ops, body floor, body library) {
  shmem_barrier_all();
  if (me == 0) {
    floor(ops);
    library(ops);
    for (int c = 0; c < chunks; ++c) {
      double a = now_ns();
      floor(ops);
      double b = now_ns();
      library(ops);
      shmem_quiet();
      double d = now_ns();
      floor_ns[c] = (b - a) / ops;
      library_ns[c] = (d - b) / ops;
    }
  }
  shmem_barrier_all();
  report(metric, chunks);
}

static void both(const char* metric, int chunks, int ops, body floor, double floor_share,
                 body library) {
  floor(ops);
  library(ops);
  for (int c = 0; c < chunks; ++c) {
    floor_round_trips(1);
    double a = now_ns();
    floor(ops);
    double b = now_ns();
    library(1);
    double d = now_ns();
    library(ops);
    double e = now_ns();
    floor_ns[c] = floor_share * (b - a) / ops;
    library_ns[c] = (e - d) / ops;
  }
  shmem_barrier_all();
  report(metric, chunks);
}

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  if (shmem_n_pes() != 2) {
    if (me == 0) fprintf(stderr, "host_latency: needs 2 PEs, not %d\n", shmem_n_pes());
    shmem_global_exit(2);
  }
  pin(me);
  word = shmem_malloc(16 * sizeof *word);
  memset(word, 0, 16 * sizeof *word);
  big = shmem_malloc(kBigBytes);
  source = malloc(kBigBytes);
  memset(big, 1, kBigBytes);
  memset(source, 2, kBigBytes);
  map_page();
  choose_flags();
  if (me == 0) {
    printf("%-22s %9s %9s %9s %9s %7s %7s\n", "# ns an operation", "floor-min", "floor-p50",
           "lib-min", "lib-p50", "r-min", "r-p50");
  }
  one_sided("p 8 B", kChunks, kOps, floor_store, library_p);
  one_sided("p 8 B + quiet", kChunks, kOps, floor_store_barrier, library_p_quiet);
  one_sided("g 8 B", kChunks, kOps, floor_load, library_g);
  one_sided("getmem 8 B", kChunks, kOps, floor_load, library_get);
  one_sided("fetch-add", kChunks, kOps, floor_fetch_add, library_fetch_add);
  both("p/wait_until RTT", kChunks, kOps, floor_round_trips, 1, library_round_trips);
  both("barrier_all (one-way)", kChunks, kOps, floor_round_trips, 0.5, library_barriers);
  one_sided("put 1 MiB + quiet", kBigChunks, 10, floor_copy, library_put_quiet);
  shmem_finalize();
  return 0;
}
