// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_PROXIED_H
#define GIMLET_GIN_IMPL_PROXIED_H

#include "gin/impl/direct.h"
#include "gin/impl/ring.h"

/// The proxy path: peers that loads and stores don't reach. One thread of a coop hands a request to
/// the proxy thread, which carries it out.
///
/// Order. Requests are taken in the order of their numbers, and a request that happens before
/// another has the smaller number. A signal is raised at the peer after its own payload is there, a
/// strong one also after that of all earlier puts of its lane; the proxy sees to both, and no
/// request waits in the ring for another. Bounds are checked here for the own part of a window, at
/// the peer for the peer's.
namespace gin {
namespace impl {

GIN_DEVICE_INLINE uint16_t window_number(ginDevComm const& comm, ginWindow_t window) {
  return static_cast<uint16_t>(window - comm.windowTable);
}

/// A place at a peer that a slot can hold, or false after a report.
GIN_DEVICE_INLINE bool is_place(ginDevComm const& comm, ginOperation operation, int world,
                                ginWindow_t window, uint64_t offset, uint64_t bytes) {
  if (!is_window(comm, window)) {
    fault_of(comm, operation, ginFaultWindow, world, 0, 0, 0);
    return false;
  }
  if (offset > kOffsetMask || bytes > kOffsetMask - offset) {
    fault_of(comm, operation, ginFaultOffset, world, static_cast<int64_t>(offset), bytes,
             kOffsetMask + 1);
    return false;
  }
  return true;
}

GIN_DEVICE_INLINE bool add_signal(ginDevComm const& comm, ginOperation operation, int world,
                                  SignalRequest const& signal, RingRequest& request) {
  if (signal.kind == SignalKind::kNone) return true;
  request.value = signal.value;
  request.signal_place = signal.place;
  if (signal.strong) request.flags |= ginRingStrong;
  if (signal.kind == SignalKind::kIndex) {
    request.flags |= ginRingIndexSignal;
    return is_signal(comm, operation, static_cast<ginSignal_t>(signal.place));
  }
  request.flags |= ginRingVaSignal;
  if (!is_place(comm, operation, world, signal.window, signal.place, sizeof(uint64_t))) {
    return false;
  }
  if (signal.place % sizeof(uint64_t) != 0) {
    fault_of(comm, operation, ginFaultAlignment, world, static_cast<int64_t>(signal.place), 8, 0);
    return false;
  }
  request.signal_window = window_number(comm, signal.window);
  return true;
}

/// Posts a transfer in pieces that a slot can hold; `last` has what follows the data.
GIN_DEVICE_INLINE void post_pieces(ginDevComm const& comm, uint32_t context,
                                   ginResourceSharingMode sharing, RingRequest last,
                                   uint64_t bytes) {
  RingRequest piece = last;
  piece.flags = 0;
  piece.length = GIN_RING_MOST_BYTES;
  for (; bytes > GIN_RING_MOST_BYTES; bytes -= GIN_RING_MOST_BYTES) {
    if (!post(comm, context, sharing, piece)) return;
    piece.from_offset = last.from_offset += GIN_RING_MOST_BYTES;
    piece.to_offset = last.to_offset += GIN_RING_MOST_BYTES;
  }
  last.length = static_cast<uint32_t>(bytes);
  post(comm, context, sharing, last);
}

/// A put with its ends, its signal and its counter.
struct ProxiedPut {
  int world;
  ginWindow_t to;
  uint64_t to_offset;
  ginWindow_t from;
  uint64_t from_offset;
  uint64_t bytes;
  SignalRequest signal;
  CounterRequest counter;
};

/// Copies a small payload that no transport may read to where all of them may. Where it can't, the
/// proxy has it copied: nobody waits for room.
GIN_DEVICE_INLINE void bounce(ginDevComm const& comm, uint32_t context, ProxiedPut const& put,
                              RingRequest& request) {
  struct ginRingBounces* const bounces = comm.rings[context].bounces;
  if (bounces == nullptr || put.from->staged == nullptr) return;
  if (put.bytes == 0 || put.bytes > GIN_RING_BOUNCE_BYTES) return;
  for (int tries = 0; tries < 4; ++tries) {
    const uint64_t number = fetch_add(&bounces->next, 1) % GIN_RING_BOUNCES;
    auto& taken = bounces->each[number];
    if (!replace(&taken.state, uint64_t{ginBounceFree}, uint64_t{ginBounceTaken})) continue;
    memcpy(taken.bytes, put.from->base + put.from_offset, put.bytes);
    request.flags |= ginRingBounced;
    request.from_offset = number;
    return;
  }
}

GIN_DEVICE_INLINE void post_put(ginDevComm const& comm, uint32_t context,
                                ginResourceSharingMode sharing, ProxiedPut const& put) {
  RingRequest request = {};
  request.operation = ginRingPut;
  request.peer = static_cast<uint32_t>(put.world);
  if (!is_place(comm, ginOpPut, put.world, put.to, put.to_offset, put.bytes)) return;
  if (resolve_own(comm, ginOpPut, put.from, put.from_offset, put.bytes) == nullptr) return;
  if (!add_signal(comm, ginOpPut, put.world, put.signal, request)) return;
  if (put.counter.present) {
    if (!is_counter(comm, ginOpPut, put.counter.counter)) return;
    request.flags |= ginRingCounter;
    request.counter = static_cast<uint16_t>(put.counter.counter);
  }
  if (put.bytes == 0 && request.flags == 0) return;
  request.from_offset = put.from_offset;
  request.from_window = window_number(comm, put.from);
  request.to_offset = put.to_offset;
  request.to_window = window_number(comm, put.to);
  bounce(comm, context, put, request);
  post_pieces(comm, context, sharing, request, put.bytes);
}

GIN_DEVICE_INLINE void post_value(ginDevComm const& comm, uint32_t context,
                                  ginResourceSharingMode sharing, int world, ginWindow_t to,
                                  uint64_t to_offset, const void* value, uint32_t bytes,
                                  SignalRequest const& signal) {
  RingRequest request = {};
  request.operation = ginRingPutInline;
  request.peer = static_cast<uint32_t>(world);
  if (!is_place(comm, ginOpPutValue, world, to, to_offset, bytes)) return;
  if (!add_signal(comm, ginOpPutValue, world, signal, request)) return;
  request.to_offset = to_offset;
  request.to_window = window_number(comm, to);
  request.length = bytes;
  memcpy(&request.operand, value, bytes);
  post(comm, context, sharing, request);
}

GIN_DEVICE_INLINE void post_get(ginDevComm const& comm, uint32_t context,
                                ginResourceSharingMode sharing, int world, ginWindow_t from,
                                uint64_t from_offset, ginWindow_t to, uint64_t to_offset,
                                uint64_t bytes) {
  if (!is_place(comm, ginOpGet, world, from, from_offset, bytes)) return;
  if (resolve_own(comm, ginOpGet, to, to_offset, bytes) == nullptr || bytes == 0) return;
  RingRequest request = {};
  request.operation = ginRingGet;
  request.peer = static_cast<uint32_t>(world);
  request.from_offset = from_offset;
  request.from_window = window_number(comm, from);
  request.to_offset = to_offset;
  request.to_window = window_number(comm, to);
  post_pieces(comm, context, sharing, request, bytes);
}

GIN_DEVICE_INLINE void post_signal(ginDevComm const& comm, ginOperation operation, uint32_t context,
                                   ginResourceSharingMode sharing, int world,
                                   SignalRequest const& signal) {
  RingRequest request = {};
  request.operation = ginRingPut;
  request.peer = static_cast<uint32_t>(world);
  if (add_signal(comm, operation, world, signal, request)) post(comm, context, sharing, request);
}

/// The slot of an atomic operation, or false after a report.
GIN_DEVICE_INLINE bool make_atomic(ginDevComm const& comm, AtomicOp op, int world,
                                   ginWindow_t window, uint64_t offset, uint32_t width,
                                   uint64_t operand, uint64_t compare, RingRequest& request) {
  if (!is_place(comm, ginOpAtomic, world, window, offset, width)) return false;
  if (offset % width != 0) {
    fault_of(comm, ginOpAtomic, ginFaultAlignment, world, static_cast<int64_t>(offset), width, 0);
    return false;
  }
  request.operation = static_cast<uint8_t>(ginRingAtomic + static_cast<int>(op));
  request.peer = static_cast<uint32_t>(world);
  request.to_offset = offset;
  request.to_window = window_number(comm, window);
  request.length = width;
  request.value = operand;
  request.operand = compare;
  return true;
}

/// Takes a free result. False: the communicator has failed.
GIN_DEVICE_INLINE bool take_result(ginDevComm const& comm, uint32_t context, uint32_t& result) {
  struct ginRing& ring = comm.rings[context];
  ginWait wait = wait_on(comm, ginOpPost, context, &ring.next_result, 0, 0);
  for (;;) {
    const uint64_t turn = fetch_add(&ring.next_result, 1);
    result = static_cast<uint32_t>(turn % GIN_RING_RESULTS);
    if (replace(&ring.results[result].state, uint64_t{ginResultFree}, uint64_t{ginResultTaken})) {
      return true;
    }
    if (has_failed(comm)) return false;
    if (turn % GIN_RING_RESULTS == 0) wait_step(wait, turn);
  }
}

/// The old value of the word, once it is here; 0 when the communicator has failed.
GIN_DEVICE_INLINE uint64_t fetch_proxied(ginDevComm const& comm, uint32_t context,
                                         ginResourceSharingMode sharing, int world,
                                         RingRequest& request) {
  if (!take_result(comm, context, request.result)) return 0;
  struct ginRingResult& result = comm.rings[context].results[request.result];
  request.flags |= ginRingFetch;
  if (!post(comm, context, sharing, request)) return 0;
  ginWait wait = wait_on(comm, ginOpAtomic, context, &result.state, 0, ginResultHere);
  wait.peer = world;
  uint64_t seen;
  // A result that nobody waits for any more stays taken: the proxy may still write it.
  if (!wait_at_least(wait, 64, Order::kAcquire, seen)) return 0;
  const uint64_t value = result.value;
  // Taken by the next thread's exchange; the proxy writes only what that one posts.
  store_release(&result.state, uint64_t{ginResultFree});
  return value;
}

/// A request that completes when everything before it is visible at the peer, or at all peers.
GIN_DEVICE_INLINE void post_drain(ginDevComm const& comm, uint32_t context,
                                  ginResourceSharingMode sharing, uint32_t peer) {
  RingRequest request = {};
  request.operation = ginRingDrain;
  request.peer = peer;
  post(comm, context, sharing, request);
}

/// Where signals and counters of this rank are read: what loads and stores raised, and what came by
/// proxies since the last reset.
struct OwnWord {
  const uint64_t* direct;
  const uint64_t* net; /* null: nothing comes that way */
  uint64_t net_base;
};

GIN_DEVICE_INLINE uint64_t* row_word(uint64_t* words, uint64_t pitch, uint32_t context,
                                     uint32_t index) {
  return words + context * (pitch / sizeof(uint64_t)) + index;
}

GIN_DEVICE_INLINE OwnWord own_signal(ginDevComm const& comm, uint32_t context, ginSignal_t signal) {
  OwnWord word = {own_signal_word(comm, context, signal), nullptr, 0};
  if (comm.netSignals == nullptr) return word;
  word.net = row_word(comm.netSignals, comm.signalsPitch, context, signal);
  word.net_base =
      load(row_word(comm.netSignalBases, comm.signalsPitch, context, signal), Order::kRelaxed);
  return word;
}

GIN_DEVICE_INLINE OwnWord own_counter(ginDevComm const& comm, uint32_t context,
                                      ginCounter_t counter) {
  OwnWord word = {counter_word(comm, context, counter), nullptr, 0};
  if (comm.netCounters == nullptr) return word;
  word.net = row_word(comm.netCounters, comm.countersPitch, context, counter);
  word.net_base =
      load(row_word(comm.netCounterBases, comm.countersPitch, context, counter), Order::kRelaxed);
  return word;
}

/// Each word has one kind of writer, so a reset notes where the proxies' word stands.
GIN_DEVICE_INLINE void reset_word(uint64_t* direct, const uint64_t* net, uint64_t* net_base) {
  store(direct, uint64_t{0});
  if (net != nullptr) store(net_base, load(net, Order::kRelaxed));
}

GIN_DEVICE_INLINE ginWait wait_on(ginDevComm const& comm, ginOperation operation, uint32_t context,
                                  OwnWord const& word, uint64_t index, uint64_t awaited) {
  ginWait wait = wait_on(comm, operation, context, word.direct, index, awaited);
  wait.net = word.net;
  wait.net_base = word.net_base;
  return wait;
}

}  // namespace impl
}  // namespace gin

#endif
