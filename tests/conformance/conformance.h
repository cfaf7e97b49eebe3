/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the conformance programs share: checks that count instead of ending the program, values that
 * tell where they come from, and places of symmetric memory of every kind.
 */
#ifndef GIMLET_TESTS_CONFORMANCE_CONFORMANCE_H
#define GIMLET_TESTS_CONFORMANCE_CONFORMANCE_H

#include <shmem.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* <shmem.h> has undefined its type lists; the tests walk through them again. */
#include "gimlet/shmem_types.h"

enum { kMaxPes = 16, kShownFailures = 10, kPatienceSeconds = 100 };

static int t_me = -1;
static int t_pes = -1;
static int t_failures = 0;

__attribute__((format(printf, 3, 4))) static inline void t_fail(const char* file, int line,
                                                                const char* format, ...) {
  if (++t_failures > kShownFailures) return;
  va_list arguments;
  char text[512];
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "%s:%d: PE %d: %s\n", file, line, t_me, text);
}

/* t_check(condition, format, ...): counts a failure and says what was found; the program goes on.
 */
#define t_check(condition, ...) ((condition) ? (void)0 : t_fail(__FILE__, __LINE__, __VA_ARGS__))

/* A test that hangs ends by itself, also when nobody launched it with a limit. */
static inline void t_start(void) {
  alarm(kPatienceSeconds);
  shmem_init();
  t_me = shmem_my_pe();
  t_pes = shmem_n_pes();
  if (t_pes <= kMaxPes) return;
  if (t_me == 0) fprintf(stderr, "at most %d PEs\n", kMaxPes);
  shmem_global_exit(99);
}

static inline int t_status(void) {
  if (t_failures != 0) fprintf(stderr, "PE %d: %d checks failed\n", t_me, t_failures);
  return t_failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int t_finish(void) {
  shmem_barrier_all();
  shmem_finalize();
  return t_status();
}

/* ---- values ---- */

static inline uint64_t t_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* Tells sender, receiver and occasion apart. */
static inline uint64_t t_key(int from, int to, uint64_t occasion) {
  return t_mix(((uint64_t)(unsigned)from << 48) ^ ((uint64_t)(unsigned)to << 32) ^ occasion);
}

static inline unsigned char t_byte(uint64_t key, size_t index) {
  return (unsigned char)(t_mix(key + index / 8) >> (index % 8 * 8));
}

static inline void t_fill(void* place, size_t bytes, uint64_t key) {
  unsigned char* to = place;
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    const uint64_t word = t_mix(key + i / 8);
    memcpy(to + i, &word, 8);
  }
  for (; i < bytes; ++i) to[i] = t_byte(key, i);
}

/* Index of the first byte that is not as t_fill() wrote it, or `bytes`. */
static inline size_t t_differs(const void* place, size_t bytes, uint64_t key) {
  const unsigned char* from = place;
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    const uint64_t word = t_mix(key + i / 8);
    if (memcmp(from + i, &word, 8) != 0) break;
  }
  while (i < bytes && from[i] == t_byte(key, i)) ++i;
  return i;
}

static inline bool t_is_all(const void* place, size_t bytes, unsigned char value) {
  const unsigned char* from = place;
  for (size_t i = 0; i < bytes; ++i) {
    if (from[i] != value) return false;
  }
  return true;
}

/* ---- time ---- */

static inline void t_sleep_us(unsigned microseconds) {
  const struct timespec nap = {microseconds / 1000000u, (long)(microseconds % 1000000u) * 1000};
  nanosleep(&nap, NULL);
}

static inline double t_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- symmetric memory of each kind: the heap, and .data and .bss of the program ---- */

enum { kPlaceBytes = 64 * 1024 };

struct place {
  const char* name;
  unsigned char* bytes;
};

static _Alignas(64) unsigned char t_data[kPlaceBytes] = {1};
static _Alignas(64) unsigned char t_bss[kPlaceBytes];
static struct place t_places[3];

static inline void t_make_places(void) {
  unsigned char* heap = shmem_malloc(kPlaceBytes);
  t_check(heap != NULL, "shmem_malloc of %d bytes failed", (int)kPlaceBytes);
  if (heap == NULL) shmem_global_exit(1);
  t_places[0] = (struct place){"heap", heap};
  t_places[1] = (struct place){".data", t_data};
  t_places[2] = (struct place){".bss", t_bss};
}

#define T_EACH_PLACE(PLACE)             \
  const struct place* PLACE = t_places; \
  PLACE != t_places + 3;                \
  ++PLACE

#endif
