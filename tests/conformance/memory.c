/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 9.3: allocations are at the same offset on every PE, aligned on every PE, apart from each other;
 * calls that do nothing also wait for nobody; what does not fit is NULL everywhere and leaves the
 * heap as it was.
 */
#include "conformance.h"

enum { kMi = 1024 * 1024, kBlocks = 24, kSteps = 400 };

static unsigned char* base; /* the first block: offsets count from here */
static uint64_t* told;      /* [2 * PEs]: what the PEs say */

/* Every PE has the same value. A difference is one PE's failure. */
static void check_agreed(const char* what, uint64_t value) {
  for (int pe = 0; pe < t_pes; ++pe) shmem_uint64_p(&told[t_me], value, pe);
  shmem_barrier_all();
  for (int pe = 0; pe < t_pes; ++pe) {
    t_check(told[pe] == value, "%s: %llu here, %llu on PE %d", what, (unsigned long long)value,
            (unsigned long long)told[pe], pe);
  }
  shmem_sync_all();
}

static void check_same_offset(const char* what, const void* block) {
  check_agreed(what, block == NULL ? UINT64_MAX : (uint64_t)((const unsigned char*)block - base));
}

static bool is_aligned(const void* block, size_t alignment) {
  return (uintptr_t)block % alignment == 0;
}

/* Only PE 0 makes these calls: a barrier in one would hang, or end together with a later one. */
static void nothing_waits_for_nobody(void) {
  if (t_me == 0) {
    t_check(shmem_malloc(0) == NULL, "malloc(0) gives an address");
    t_check(shmem_calloc(0, 8) == NULL, "calloc(0, 8) gives an address");
    t_check(shmem_calloc(8, 0) == NULL, "calloc(8, 0) gives an address");
    t_check(shmem_align(64, 0) == NULL, "align(64, 0) gives an address");
    t_check(shmem_realloc(NULL, 0) == NULL, "realloc(NULL, 0) gives an address");
    shmem_free(NULL);
  }
  check_agreed("calls that do nothing", 1);
}

static void wrong_sizes_and_alignments(void) {
  t_check(shmem_calloc(SIZE_MAX / 2, 4) == NULL, "calloc with an overflow gives an address");
  t_check(shmem_calloc((size_t)1 << 33, (size_t)1 << 33) == NULL, "calloc overflow to 4");
  t_check(shmem_malloc(SIZE_MAX) == NULL, "malloc(SIZE_MAX) gives an address");
  t_check(shmem_malloc(SIZE_MAX - 100) == NULL, "malloc(SIZE_MAX - 100) gives an address");
  t_check(shmem_align(4096, SIZE_MAX - 4000) == NULL, "align with SIZE_MAX - 4000");
  static const size_t alignments[] = {0, 1, 2, 4, 3, 24, 48, 100, SIZE_MAX};
  for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; ++i) {
    t_check(shmem_align(alignments[i], 64) == NULL, "align(%zu, 64) gives an address",
            alignments[i]);
  }
  check_agreed("wrong arguments", 2);
}

static void alignments_hold_everywhere(void) {
  void* blocks[32] = {NULL};
  int count = 0;
  for (size_t alignment = sizeof(void*); alignment <= 64 * kMi; alignment *= 2) {
    void* block = shmem_align(alignment, 100);
    t_check(block != NULL && is_aligned(block, alignment), "align(%zu, 100) gives %p", alignment,
            block);
    check_same_offset("align", block);
    if (block != NULL) memset(block, 0x11, 100);
    blocks[count++] = block;
  }
  for (int i = 0; i < count; ++i) shmem_free(blocks[i]);
  void* plain = shmem_malloc(1);
  t_check(is_aligned(plain, _Alignof(max_align_t)), "malloc(1) gives %p", plain);
  shmem_free(plain);
}

struct block {
  unsigned char* bytes;
  size_t size;
  uint64_t key;
};

static void check_contents(const struct block* block, size_t bytes, const char* when) {
  const size_t wrong = t_differs(block->bytes, bytes, block->key);
  t_check(wrong == bytes, "%s: byte %zu of %zu is not as it was left", when, wrong, block->size);
}

/* The same draws on every PE; each writes its own bytes and finds them again. */
static void random_calls(void) {
  struct block blocks[kBlocks];
  memset(blocks, 0, sizeof blocks);
  for (int step = 0; step < kSteps; ++step) {
    const uint64_t draw = t_key(0, 0, 9000 + (uint64_t)step);
    struct block* block = &blocks[draw % kBlocks];
    const size_t size = 1 + (draw >> 16) % (draw % 5 == 0 ? 300000 : 700);
    if (block->bytes == NULL) {
      switch (draw >> 8 & 3) {
        case 0:
          block->bytes = shmem_malloc(size);
          break;
        case 1: {
          block->bytes = shmem_calloc((size + 6) / 7, 7);
          t_check(t_is_all(block->bytes, size, 0), "calloc of %zu bytes is not zero", size);
          break;
        }
        case 2: {
          const size_t alignment = (size_t)8 << (draw >> 40) % 14;
          block->bytes = shmem_align(alignment, size);
          t_check(is_aligned(block->bytes, alignment), "align(%zu, %zu) gives %p", alignment, size,
                  (void*)block->bytes);
          break;
        }
        default:
          block->bytes = shmem_realloc(NULL, size);
      }
      block->size = size;
    } else if (draw >> 8 & 1) {
      check_contents(block, block->size, "before free");
      shmem_free(block->bytes);
      block->bytes = NULL;
      continue;
    } else {
      unsigned char* moved = shmem_realloc(block->bytes, size);
      t_check(moved != NULL, "realloc to %zu bytes fails", size);
      block->bytes = moved;
      check_contents(block, size < block->size ? size : block->size, "after realloc");
      block->size = size;
    }
    if (block->bytes == NULL) {
      t_check(false, "step %d fails", step);
      continue;
    }
    if (step % 8 == 0) check_same_offset("random calls", block->bytes);
    block->key = t_key(t_me, step, 1);
    t_fill(block->bytes, block->size, block->key);
  }
  for (int i = 0; i < kBlocks; ++i) {
    if (blocks[i].bytes == NULL) continue;
    check_contents(&blocks[i], blocks[i].size, "at the end");
    shmem_free(blocks[i].bytes);
  }
}

static void realloc_keeps_what_it_can(void) {
  struct block block = {shmem_malloc(1000), 1000, t_key(t_me, 1, 1)};
  void* wall = shmem_malloc(64); /* the block can't grow in place */
  t_fill(block.bytes, 1000, block.key);
  block.bytes = shmem_realloc(block.bytes, 5 * kMi);
  check_contents(&block, 1000, "realloc to more");
  check_same_offset("realloc to more", block.bytes);
  block.bytes = shmem_realloc(block.bytes, 10);
  check_contents(&block, 10, "realloc to less");
  t_fill(block.bytes, 10, block.key);
  unsigned char* const same = block.bytes;
  t_check(shmem_realloc(block.bytes, (size_t)1 << 50) == NULL, "realloc to 2^50 bytes succeeds");
  check_contents(&block, 10, "realloc that failed");
  shmem_barrier_all();
  shmem_int8_p((int8_t*)&same[3], (int8_t)t_me, (t_me + 1) % t_pes); /* it is still symmetric */
  shmem_barrier_all();
  t_check(same[3] == (t_me + t_pes - 1) % t_pes, "a block that did not grow lost a put");
  t_check(shmem_realloc(block.bytes, 0) == NULL, "realloc(p, 0) gives an address");
  shmem_free(wall);
  check_agreed("realloc", 3);
}

/* Memory may be used at a peer as soon as the call returned here, even when the peer is late. */
static void peers_are_ready(void) {
  const int to = (t_me + 1) % t_pes;
  const int from = (t_me + t_pes - 1) % t_pes;
  for (int round = 0; round < 20; ++round) {
    long* dirty = shmem_malloc(8000);
    memset(dirty, 0xee, 8000);
    shmem_free(dirty);
    if (t_key(t_me, 0, (uint64_t)round) % 3 == 0) t_sleep_us(500);
    long* clean = shmem_calloc(1000, 8);
    t_check(clean[1] == 0 && clean[999] == 0, "calloc is not zero");
    shmem_long_p(&clean[0], 100 * round + t_me, to);
    shmem_barrier_all();
    t_check(clean[0] == 100 * round + from, "round %d: calloc cleared what PE %d put after it",
            round, from);
    /* A put of a peer that has not yet called free arrives before the block is anybody else's. */
    if (t_key(t_me, 1, (uint64_t)round) % 3 == 0) t_sleep_us(500);
    shmem_long_p(&clean[5], 4711, to);
    shmem_free(clean);
    long* next = shmem_malloc(8000);
    next[5] = 1;
    shmem_barrier_all();
    t_check(next[5] == 1, "a put to a freed block arrived in the next one");
    shmem_free(next);
  }
}

static void exhaustion_is_agreed(void) {
  static void* blocks[4096];
  int count = 0;
  while (count < 4096 && (blocks[count] = shmem_malloc(kMi)) != NULL) ++count;
  check_agreed("blocks until the heap was full", (uint64_t)count);
  t_check(count > 200 && count < 260, "%d blocks of 1 MiB fit 256 MiB", count);
  t_check(shmem_calloc(1, kMi) == NULL && shmem_align(64, kMi) == NULL, "a full heap has room");
  for (int i = 0; i < count; i += 2) shmem_free(blocks[i]);
  t_check(shmem_malloc(2 * kMi) == NULL, "2 MiB fit where every other MiB is taken");
  for (int i = 1; i < count; i += 2) shmem_free(blocks[i]);
  void* large = shmem_malloc((size_t)count * kMi);
  t_check(large != NULL, "free neighbours did not become one block of %d MiB", count);
  check_same_offset("after exhaustion", large);
  shmem_free(large);
}

int main(void) {
  unsetenv("SMA_SYMMETRIC_SIZE");
  setenv("SHMEM_SYMMETRIC_SIZE", "256m", 1);
  t_start();
  base = shmem_malloc(64);
  told = shmem_calloc((size_t)t_pes, sizeof *told);
  nothing_waits_for_nobody();
  wrong_sizes_and_alignments();
  alignments_hold_everywhere();
  random_calls();
  realloc_keeps_what_it_can();
  peers_are_ready();
  exhaustion_is_agreed();
  nothing_waits_for_nobody();
  shmem_free(told);
  shmem_free(base);
  return t_finish();
}
