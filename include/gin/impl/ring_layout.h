/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GIMLET_GIN_IMPL_RING_LAYOUT_H
#define GIMLET_GIN_IMPL_RING_LAYOUT_H

#include <stdint.h>

#include "gin/dev_comm.h"
#include "gin/platform.h"

/*
 * The ring through which device threads hand requests to a proxy thread: one per context.
 *
 * Slots. A request is one slot of 64 bytes in four quarters of 16 bytes, each of two words. The
 * last 16 bits of each quarter are the phase of the lap, never 0: the proxy takes a slot when all
 * four phases are those of its lap. A reader looks at the second word of a quarter first, with
 * acquire.
 *
 *   quarter  first word                            second word (bits 48 to 63: phase)
 *   0        source offset 48 | window 16          operation 8 | flags 8 | peer 32
 *   1        destination offset 48 | window 16     length 32 | counter 16
 *   2        signal place 48 | window 16           value, low 48 bits
 *   3        inline value or operand 64            value, high 16 bits | result 32
 *
 * Ownership. A thread that adds to `head` owns that slot until its last store, a release; then the
 * proxy does, until it publishes `consumed`, also a release; the acquire of whoever reads a credit
 * lets the next lap write. One thread at a time reads `consumed` for all that wait.
 *
 * Completion. `done` is the number of the oldest request that is not complete, or `consumed` when
 * all are; `oldest[peer]` is the same for the requests to one peer, GIN_RING_NONE when all that
 * were consumed are complete. The proxy lowers a peer's word before it publishes that it consumed
 * the request, so a reader looks at `consumed` first. All are releases of what completed: sources
 * may be written again and what gets brought may be read.
 */

#define GIN_RING_LEAST_DEPTH 64u
#define GIN_RING_DEPTH 4096u
#define GIN_RING_NONE (UINT64_MAX >> 1) /* more than any number, in a rolling comparison too */
#define GIN_RING_MOST_BYTES (1u << 30)  /* of one slot */
#define GIN_RING_ALL_PEERS UINT32_MAX

enum ginRingOperation {
  ginRingPut = 1,
  ginRingPutInline = 2, /* `length` bytes of the operand */
  ginRingGet = 3,
  ginRingDrain = 4,  /* complete when everything before it is visible at the peer, or at all */
  ginRingAtomic = 16 /* + an AtomicOp: on the word of `length` bytes at the destination, with
                        `value` as operand and the inline value to compare with */
};

enum ginRingFlags {
  ginRingIndexSignal = 1 << 0,
  ginRingVaSignal = 1 << 1,
  ginRingStrong = 1 << 2,
  ginRingCounter = 1 << 3,
  ginRingFetch = 1 << 4,  /* the old value goes to the result of that number */
  ginRingBounced = 1 << 5 /* the source is the bounce of that number, not an offset */
};

struct ginRingSlot {
#ifdef __cplusplus
  alignas(64)
#else
  _Alignas(64)
#endif
      uint64_t words[8];
};

/* Where the old value of a word arrives. A thread that wants one takes a free result and gives it
 * back when it has read it; the proxy's release of `state` comes after the value. */
#define GIN_RING_RESULTS 256u
enum { ginResultFree = 0, ginResultTaken = 1, ginResultHere = 2 };
struct ginRingResult {
  uint64_t state;
  uint64_t value;
};

/* Where device threads put the payload of a small put whose source no transport may read. A thread
 * takes a free one, and the proxy's release of `state` gives it back when the put is complete. */
#define GIN_RING_BOUNCES 256u
#define GIN_RING_BOUNCE_BYTES 1016u
enum { ginBounceFree = 0, ginBounceTaken = 1 };
struct ginRingBounces {
  uint64_t next; /* where the next thread looks first */
  uint64_t unused[7];
  struct ginRingBounce {
    uint64_t state;
    unsigned char bytes[GIN_RING_BOUNCE_BYTES];
  } each[GIN_RING_BOUNCES];
};

/* What the proxy writes and device code reads. */
struct ginRingProgress {
  uint64_t consumed; /* slots that may be written again */
  uint64_t unused0[7];
  uint64_t done;
  uint64_t unused1[7];
};

struct ginRing {
  uint64_t head; /* next slot to reserve */
  uint64_t unused0[7];
  uint64_t credit; /* `consumed` as last read */
  uint32_t refreshing;
  uint32_t unused1[13];
  struct ginRingSlot* slots;
  uint64_t depth; /* a power of two */
  struct ginRingProgress* progress;
  uint64_t* oldest;               /* by peer */
  uint32_t* parked;               /* not 0: the proxy sleeps, or is about to */
  struct ginRingResult* results;  /* GIN_RING_RESULTS */
  uint64_t next_result;           /* where the next thread looks for a free one first */
  struct ginRingBounces* bounces; /* null: transports may read all sources */
};

#ifdef __cplusplus
namespace gin {
namespace impl {

constexpr uint64_t kOffsetBits = 48;
constexpr uint64_t kOffsetMask = (uint64_t{1} << kOffsetBits) - 1;

/// One request as device code makes it and the proxy reads it.
struct RingRequest {
  uint8_t operation; /* ginRingOperation */
  uint8_t flags;     /* ginRingFlags */
  uint32_t peer;     /* world rank, or GIN_RING_ALL_PEERS */
  uint64_t from_offset;
  uint16_t from_window; /* numbers of entries of the window table */
  uint64_t to_offset;
  uint16_t to_window;
  uint32_t length;
  uint16_t counter;
  uint64_t signal_place; /* index, or offset in the window */
  uint16_t signal_window;
  uint64_t value;   /* that the signal grows by */
  uint64_t operand; /* inline value */
  uint32_t result;
};

/// A division by a depth that only the ring knows would be the dearest part of a request.
GIN_HOST_DEVICE_INLINE constexpr int log2_of_depth(uint64_t depth) {
#ifdef __CUDA_ARCH__
  return 63 - __clzll(static_cast<long long>(depth));
#else
  return __builtin_ctzll(depth);
#endif
}

GIN_HOST_DEVICE_INLINE constexpr uint64_t ring_phase(uint64_t number, uint64_t depth) {
  return 1 + (number >> log2_of_depth(depth)) % 65535;
}

/// Words of a slot, in the order in which they are stored.
GIN_HOST_DEVICE_INLINE constexpr void encode_slot(RingRequest const& r, uint64_t phase,
                                                  uint64_t (&words)[8]) {
  const uint64_t tag = phase << kOffsetBits;
  words[0] = (r.from_offset & kOffsetMask) | uint64_t{r.from_window} << kOffsetBits;
  words[1] = r.operation | uint64_t{r.flags} << 8 | uint64_t{r.peer} << 16 | tag;
  words[2] = (r.to_offset & kOffsetMask) | uint64_t{r.to_window} << kOffsetBits;
  words[3] = r.length | uint64_t{r.counter} << 32 | tag;
  words[4] = (r.signal_place & kOffsetMask) | uint64_t{r.signal_window} << kOffsetBits;
  words[5] = (r.value & kOffsetMask) | tag;
  words[6] = r.operand;
  words[7] = r.value >> kOffsetBits | uint64_t{r.result} << 16 | tag;
}

GIN_HOST_DEVICE_INLINE constexpr RingRequest decode_slot(const uint64_t (&words)[8]) {
  RingRequest r{};
  r.from_offset = words[0] & kOffsetMask;
  r.from_window = static_cast<uint16_t>(words[0] >> kOffsetBits);
  r.operation = static_cast<uint8_t>(words[1]);
  r.flags = static_cast<uint8_t>(words[1] >> 8);
  r.peer = static_cast<uint32_t>(words[1] >> 16);
  r.to_offset = words[2] & kOffsetMask;
  r.to_window = static_cast<uint16_t>(words[2] >> kOffsetBits);
  r.length = static_cast<uint32_t>(words[3]);
  r.counter = static_cast<uint16_t>(words[3] >> 32);
  r.signal_place = words[4] & kOffsetMask;
  r.signal_window = static_cast<uint16_t>(words[4] >> kOffsetBits);
  r.value = (words[5] & kOffsetMask) | words[7] << kOffsetBits;
  r.operand = words[6];
  r.result = static_cast<uint32_t>(words[7] >> 16);
  return r;
}

}  // namespace impl
}  // namespace gin
#endif

#endif
