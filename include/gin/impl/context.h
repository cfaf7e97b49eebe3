// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_CONTEXT_H
#define GIMLET_GIN_IMPL_CONTEXT_H

#include "gin/impl/proxied.h"

// A coop synchronises the same number of times whatever its threads see of the error word, which
// may change between two of them.
namespace gin {
namespace impl {

template <size_t Bytes>
struct SizedWordOf;
template <>
struct SizedWordOf<4> {
  using type = uint32_t;
};
template <>
struct SizedWordOf<8> {
  using type = uint64_t;
};
template <size_t Bytes>
using SizedWord = typename SizedWordOf<Bytes>::type;

/// One put, whole: the lane's context, the peer, the two ends, and what follows the data.
struct PutRequest {
  uint32_t context;
  int world; /* -1: already reported */
  ginWindow_t to;
  uint64_t to_offset;
  ginWindow_t from;
  uint64_t from_offset;
  uint64_t bytes;
  SignalRequest signal;
  CounterRequest counter;
  thread_scope given;
  thread_scope required;
};

template <class Coop>
GIN_DEVICE_INLINE void put_direct(ginDevComm const& comm, PutRequest const& request, Coop coop) {
  coop.sync();
  char* to = nullptr;
  const char* from = nullptr;
  if (request.world >= 0 && !has_failed(comm)) {
    to = resolve(comm, ginOpPut, request.world, request.to, request.to_offset, request.bytes);
    from = resolve_own(comm, ginOpPut, request.from, request.from_offset, request.bytes);
  }
  const bool good = to != nullptr && from != nullptr;
  if (request.bytes != 0) {
    if (good) copy_share(to, from, request.bytes, share_of(coop));
    coop.sync();
  }
  if (request.signal.kind == SignalKind::kNone && !request.counter.present) return;
  if (good && coop.thread_rank() == 0) {
    if (request.signal.kind != SignalKind::kNone) {
      uint64_t* word = request_word(comm, ginOpPut, request.world, request.context, request.signal);
      // Publishes the payload; taken by the acquire of the wait or read that sees the new value.
      const Order order = request.bytes != 0 ? kPutSignalOrder
                                             : bare_signal_order(request.signal.strong,
                                                                 request.given, request.required);
      if (word != nullptr) add(word, request.signal.value, order);
    }
    // Orders the reads of the source before writes of whoever acquires the counter.
    if (request.counter.present && is_counter(comm, ginOpPut, request.counter.counter)) {
      add(counter_word(comm, request.context, request.counter.counter), 1, Order::kRelease);
    }
  }
  coop.sync();
}

template <class Coop>
GIN_DEVICE_INLINE void put_proxied(ginDevComm const& comm, PutRequest const& request,
                                   ginResourceSharingMode sharing, Coop coop) {
  coop.sync();
  if (coop.thread_rank() == 0 && !has_failed(comm)) {
    post_put(comm, request.context, sharing,
             {request.world, request.to, request.to_offset, request.from, request.from_offset,
              request.bytes, request.signal, request.counter});
  }
  coop.sync();
}

GIN_DEVICE_INLINE Order wait_order(memory_order order) {
  return has_acquire(order) ? kWaitOrder : Order::kRelaxed;
}

GIN_DEVICE_INLINE uint64_t read_word(ginDevComm const& comm, OwnWord const& word, int bits,
                                     memory_order given) {
  if (comm.trapsOnError != 0) has_failed(comm);  // the caller may look again and again
  const Order order = has_acquire(given) ? Order::kAcquire : Order::kRelaxed;
  uint64_t value = load(word.direct, order);
  if (word.net != nullptr) value += load(word.net, order) - word.net_base;
  note_look(word.direct, value);
  return low_bits(value, bits);
}

}  // namespace impl

GIN_DEVICE_INLINE Context::Context(ginDevComm const& devComm, int contextIndex,
                                   ginResourceSharingMode mode)
    : comm(devComm),
      nConnections(devComm.ginConnectionCount & 0xff),
      connectionId(0),
      contextId(static_cast<uint32_t>(contextIndex)),
      resourceSharingMode(mode) {
  if (contextId < comm.ginContextCount) return;
  impl::fault_of(comm, ginOpContext, ginFaultContext, -1, contextIndex, 0, comm.ginContextCount);
  contextId = 0;  // never used for more than addresses: the communicator has failed
}

template <class RemoteAction, class LocalAction, class Coop, class Descriptor, class SegmentType>
GIN_DEVICE_INLINE void Context::put(ginTeam_t team, int peer, ginWindow_t dstWnd, size_t dstOffset,
                                    ginWindow_t srcWnd, size_t srcOffset, size_t bytes,
                                    RemoteAction remoteAction, LocalAction localAction, Coop coop,
                                    Descriptor, thread_scope givenRelease,
                                    thread_scope requiredRelease, uint32_t, SegmentType) const {
  const impl::PutRequest request = {contextId,
                                    impl::world_rank(comm, ginOpPut, team, peer),
                                    dstWnd,
                                    dstOffset,
                                    srcWnd,
                                    srcOffset,
                                    bytes,
                                    impl::lower(comm.strongLegacySignals != 0, remoteAction),
                                    impl::lower_local(localAction),
                                    givenRelease,
                                    requiredRelease};
  if (request.world >= 0 && !impl::is_direct(comm, request.world)) {
    impl::put_proxied(comm, request, resourceSharingMode, coop);
  } else {
    impl::put_direct(comm, request, coop);
  }
}

template <class T, class RemoteAction, class LocalAction, class Coop, class Descriptor,
          class SegmentType>
GIN_DEVICE_INLINE void Context::put(ginTeam_t team, int peer, SymPtr<T> dstElts, SymPtr<T> srcElts,
                                    size_t nElts, RemoteAction remoteAction,
                                    LocalAction localAction, Coop coop, Descriptor descriptor,
                                    thread_scope givenRelease, thread_scope requiredRelease,
                                    uint32_t optFlags, SegmentType bufType) const {
  put(team, peer, dstElts.window, dstElts.offset, srcElts.window, srcElts.offset, nElts * sizeof(T),
      remoteAction, localAction, coop, descriptor, givenRelease, requiredRelease, optFlags,
      bufType);
}

template <class T, class RemoteAction, class Coop, class Descriptor>
GIN_DEVICE_INLINE void Context::putValue(ginTeam_t team, int peer, ginWindow_t dstWnd,
                                         size_t dstOffset, T value, RemoteAction remoteAction,
                                         Coop coop, Descriptor, thread_scope, thread_scope,
                                         uint32_t) const {
  coop.sync();
  const int world = impl::world_rank(comm, ginOpPutValue, team, peer);
  const impl::SignalRequest signal = impl::lower(comm.strongLegacySignals != 0, remoteAction);
  const bool posts = coop.thread_rank() == 0 && world >= 0 && !impl::has_failed(comm);
  if (posts && !impl::is_direct(comm, world)) {
    static_assert(sizeof(T) <= 8, "putValue takes values of at most 8 bytes");
    impl::post_value(comm, contextId, resourceSharingMode, world, dstWnd, dstOffset, &value,
                     sizeof(T), signal);
  } else if (posts) {
    char* to = impl::resolve(comm, ginOpPutValue, world, dstWnd, dstOffset, sizeof(T));
    if (to != nullptr) impl::store_value(to, value);
    if (to != nullptr && signal.kind != impl::SignalKind::kNone) {
      uint64_t* word = impl::request_word(comm, ginOpPutValue, world, contextId, signal);
      // Publishes the value; taken by the acquire of the wait or read that sees it.
      if (word != nullptr) impl::add(word, signal.value, impl::kPutSignalOrder);
    }
  }
  coop.sync();
}

template <class T, class RemoteAction, class Coop, class Descriptor>
GIN_DEVICE_INLINE void Context::putValue(ginTeam_t team, int peer, SymPtr<T> dst, T value,
                                         RemoteAction remoteAction, Coop coop,
                                         Descriptor descriptor, thread_scope givenRelease,
                                         thread_scope requiredRelease, uint32_t optFlags) const {
  putValue(team, peer, dst.window, dst.offset, value, remoteAction, coop, descriptor, givenRelease,
           requiredRelease, optFlags);
}

template <class Coop, class Descriptor, class SegmentType>
GIN_DEVICE_INLINE void Context::get(ginTeam_t team, int peer, ginWindow_t remoteWnd,
                                    size_t remoteOffset, ginWindow_t localWnd, size_t localOffset,
                                    size_t bytes, Coop coop, Descriptor, uint32_t,
                                    SegmentType) const {
  coop.sync();
  const int world = impl::world_rank(comm, ginOpGet, team, peer);
  if (world >= 0 && !impl::is_direct(comm, world)) {
    if (coop.thread_rank() == 0 && !impl::has_failed(comm)) {
      impl::post_get(comm, contextId, resourceSharingMode, world, remoteWnd, remoteOffset, localWnd,
                     localOffset, bytes);
    }
  } else if (world >= 0 && !impl::has_failed(comm)) {
    const char* from = impl::resolve(comm, ginOpGet, world, remoteWnd, remoteOffset, bytes);
    char* to = impl::resolve_own(comm, ginOpGet, localWnd, localOffset, bytes);
    if (from != nullptr && to != nullptr && bytes != 0) {
      impl::copy_share(to, from, bytes, impl::share_of(coop));
    }
  }
  coop.sync();
}

template <class RemoteAction, class Coop, class Descriptor>
GIN_DEVICE_INLINE void Context::signal(ginTeam_t team, int peer, RemoteAction action, Coop coop,
                                       Descriptor, thread_scope givenRelease,
                                       thread_scope requiredRelease, uint32_t) const {
  coop.sync();
  const impl::SignalRequest request = impl::lower(comm.strongLegacySignals != 0, action);
  const int world = impl::world_rank(comm, ginOpSignal, team, peer);
  const bool posts = coop.thread_rank() == 0 && request.kind != impl::SignalKind::kNone &&
                     world >= 0 && !impl::has_failed(comm);
  if (posts && !impl::is_direct(comm, world)) {
    impl::post_signal(comm, ginOpSignal, contextId, resourceSharingMode, world, request);
  } else if (posts) {
    uint64_t* word = impl::request_word(comm, ginOpSignal, world, contextId, request);
    // A strong one publishes all earlier puts of the lane; taken by the acquire of the wait.
    if (word != nullptr) {
      impl::add(word, request.value,
                impl::bare_signal_order(request.strong, givenRelease, requiredRelease));
    }
  }
  coop.sync();
}

namespace impl {

/// The unsigned word that carries a T.
template <class T>
struct WordOf {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomic operations take words of 4 or 8 bytes");
  static_assert(T(1) / T(2) == T(0), "atomic operations take integers");
  using type = SizedWord<sizeof(T)>;
};

template <class Word>
GIN_DEVICE_INLINE Word* resolve_atomic(ginDevComm const& comm, int world, ginWindow_t window,
                                       uint64_t offset) {
  char* address = resolve(comm, ginOpAtomic, world, window, offset, sizeof(Word));
  if (address == nullptr || offset % sizeof(Word) == 0) return reinterpret_cast<Word*>(address);
  fault_of(comm, ginOpAtomic, ginFaultAlignment, world, static_cast<int64_t>(offset), sizeof(Word),
           0);
  return nullptr;
}

}  // namespace impl

template <class T, class Coop>
GIN_DEVICE_INLINE void Context::atomic(AtomicOp op, ginTeam_t team, int peer, ginWindow_t window,
                                       size_t offset, T operand, Coop coop) const {
  using Word = typename impl::WordOf<T>::type;
  coop.sync();
  const int world = impl::world_rank(comm, ginOpAtomic, team, peer);
  if (coop.thread_rank() == 0 && world >= 0 && !impl::has_failed(comm)) {
    const Word word = static_cast<Word>(operand);
    if (impl::is_direct(comm, world)) {
      Word* place = impl::resolve_atomic<Word>(comm, world, window, offset);
      if (place != nullptr) impl::update(place, op, word, Word{0});
    } else {
      impl::RingRequest request = {};
      if (impl::make_atomic(comm, op, world, window, offset, sizeof(T), word, 0, request)) {
        impl::post(comm, contextId, resourceSharingMode, request);
      }
    }
  }
  coop.sync();
}

template <class T>
GIN_DEVICE_INLINE T Context::atomicFetch(AtomicOp op, ginTeam_t team, int peer, ginWindow_t window,
                                         size_t offset, T operand, T compare) const {
  using Word = typename impl::WordOf<T>::type;
  const int world = impl::world_rank(comm, ginOpAtomic, team, peer);
  if (world < 0 || impl::has_failed(comm)) return T{};
  const Word word = static_cast<Word>(operand);
  if (impl::is_direct(comm, world)) {
    Word* place = impl::resolve_atomic<Word>(comm, world, window, offset);
    if (place == nullptr) return T{};
    return static_cast<T>(impl::update(place, op, word, static_cast<Word>(compare)));
  }
  impl::RingRequest request = {};
  if (!impl::make_atomic(comm, op, world, window, offset, sizeof(T), word,
                         static_cast<Word>(compare), request)) {
    return T{};
  }
  const uint64_t old = impl::fetch_proxied(comm, contextId, resourceSharingMode, world, request);
  return static_cast<T>(static_cast<Word>(old));
}

// Nothing is ever outstanding on the direct path. The acquire load takes what other threads
// released before they and the caller synchronised, as a fence would.
template <class Coop, class Descriptor>
GIN_DEVICE_INLINE void Context::flush(Coop coop, memory_order ord, Descriptor) const {
  coop.sync();
  if (coop.thread_rank() == 0) {
    impl::wait_done(comm, contextId, impl::posted_so_far(comm, contextId), impl::wait_order(ord),
                    0);
  }
  coop.sync();
  if (impl::has_acquire(ord)) impl::load(&comm.error->state, impl::Order::kAcquire);
}

template <class Coop, class Descriptor>
GIN_DEVICE_INLINE void Context::flushAsync(ginTeam_t team, uint32_t peer, ginRequest_t* outRequest,
                                           Coop coop, uint32_t, Descriptor) const {
  coop.sync();
  const int world = impl::world_rank(comm, ginOpFlush, team, static_cast<int>(peer));
  if (coop.thread_rank() == 0) {
    outRequest->opaque[0] = static_cast<uint32_t>(world) | uint64_t{contextId} << 32;
    outRequest->opaque[1] = impl::posted_so_far(comm, contextId);
  }
  coop.sync();
}

template <class Coop, class Descriptor>
GIN_DEVICE_INLINE void Context::wait(ginRequest_t& request, Coop coop, Descriptor,
                                     memory_order ord) const {
  coop.sync();
  const int world = static_cast<int>(static_cast<uint32_t>(request.opaque[0]));
  if (coop.thread_rank() == 0 && world >= 0 && !impl::is_direct(comm, world)) {
    impl::wait_peer_done(comm, contextId, world, request.opaque[1], impl::wait_order(ord));
  }
  coop.sync();
  if (impl::has_acquire(ord)) impl::load(&comm.error->state, impl::Order::kAcquire);
}

GIN_DEVICE_INLINE uint64_t Context::readSignal(ginSignal_t signal, int bits,
                                               memory_order ord) const {
  if (!impl::is_signal(comm, ginOpReadSignal, signal)) return 0;
  return impl::read_word(comm, impl::own_signal(comm, contextId, signal), bits, ord);
}

GIN_DEVICE_INLINE uint64_t Context::readSignal(ginWindow_t signalWindow, size_t signalOffset,
                                               int bits, memory_order ord) const {
  const uint64_t* word = impl::resolve_own_word(comm, ginOpReadSignal, signalWindow, signalOffset);
  return word == nullptr ? 0 : impl::read_word(comm, {word, nullptr, 0}, bits, ord);
}

template <class Coop>
GIN_DEVICE_INLINE void Context::waitSignal(Coop coop, ginSignal_t signal, uint64_t least, int bits,
                                           memory_order ord) const {
  if (coop.thread_rank() == 0 && impl::is_signal(comm, ginOpWaitSignal, signal)) {
    const impl::OwnWord word = impl::own_signal(comm, contextId, signal);
    ginWait wait = impl::wait_on(comm, ginOpWaitSignal, contextId, word, signal, least);
    uint64_t seen;
    impl::wait_at_least(wait, bits, impl::wait_order(ord), seen);
  }
  coop.sync();
}

template <class Coop>
GIN_DEVICE_INLINE void Context::waitSignal(Coop coop, ginWindow_t signalWindow, size_t signalOffset,
                                           uint64_t least, int bits, memory_order ord) const {
  if (coop.thread_rank() == 0) {
    const uint64_t* word =
        impl::resolve_own_word(comm, ginOpWaitSignal, signalWindow, signalOffset);
    if (word != nullptr) {
      ginWait wait = impl::wait_on(comm, ginOpWaitSignal, contextId, word, signalOffset, least);
      wait.window = signalWindow;
      uint64_t seen;
      impl::wait_at_least(wait, bits, impl::wait_order(ord), seen);
    }
  }
  coop.sync();
}

template <class Coop>
GIN_DEVICE_INLINE void Context::waitSignalMeetShadow(Coop coop, ginSignal_t signal, int bits,
                                                     memory_order ord) const {
  uint64_t least = 0;
  if (coop.thread_rank() == 0 && impl::is_signal(comm, ginOpShadow, signal)) {
    least = impl::load(impl::shadow_word(comm, contextId, signal), impl::Order::kRelaxed);
  }
  waitSignal(coop, signal, least, bits, ord);
}

// All threads read the shadow before and after one of them moves it: no scratch is needed to tell
// the others, and the syncs between are what orders the reads.
template <class Coop, class Uint>
GIN_DEVICE_INLINE void Context::waitSignalFollowShadow(Coop coop, ginSignal_t signal,
                                                       Uint leastDelta, Uint* before, Uint* delta,
                                                       int bits, memory_order ord) const {
  uint64_t* shadow = impl::is_signal(comm, ginOpShadow, signal)
                         ? impl::shadow_word(comm, contextId, signal)
                         : nullptr;
  const uint64_t old = shadow == nullptr ? 0 : impl::load(shadow, impl::Order::kRelaxed);
  coop.sync();
  if (shadow != nullptr && coop.thread_rank() == 0) {
    const impl::OwnWord word = impl::own_signal(comm, contextId, signal);
    ginWait wait = impl::wait_on(comm, ginOpWaitSignal, contextId, word, signal, old + leastDelta);
    uint64_t seen;
    if (impl::wait_at_least(wait, bits, impl::wait_order(ord), seen)) impl::store(shadow, seen);
  }
  coop.sync();
  const uint64_t now = shadow == nullptr ? old : impl::load(shadow, impl::Order::kRelaxed);
  *before = static_cast<Uint>(impl::low_bits(old, bits));
  *delta = static_cast<Uint>(impl::low_bits(now - old, bits));
  coop.sync();
}

GIN_DEVICE_INLINE uint64_t* Context::getSignalShadowPtr(ginSignal_t signal) const {
  if (!impl::is_signal(comm, ginOpShadow, signal)) return nullptr;
  return impl::shadow_word(comm, contextId, signal);
}

GIN_DEVICE_INLINE void Context::increaseSignalShadow(ginSignal_t signal, uint64_t delta) const {
  if (!impl::is_signal(comm, ginOpShadow, signal)) return;
  impl::add(impl::shadow_word(comm, contextId, signal), delta, impl::Order::kRelaxed);
}

GIN_DEVICE_INLINE void Context::resetSignal(ginSignal_t signal) const {
  if (!impl::is_signal(comm, ginOpResetSignal, signal)) return;
  const impl::OwnWord word = impl::own_signal(comm, contextId, signal);
  impl::reset_word(impl::own_signal_word(comm, contextId, signal), word.net,
                   impl::row_word(comm.netSignalBases, comm.signalsPitch, contextId, signal));
  impl::store(impl::shadow_word(comm, contextId, signal), uint64_t{0});
}

GIN_DEVICE_INLINE void Context::resetSignal(ginWindow_t signalWindow, size_t signalOffset) const {
  uint64_t* word = impl::resolve_own_word(comm, ginOpResetSignal, signalWindow, signalOffset);
  if (word != nullptr) impl::store(word, uint64_t{0});
}

GIN_DEVICE_INLINE uint64_t Context::readCounter(ginCounter_t counter, int bits,
                                                memory_order ord) const {
  if (!impl::is_counter(comm, ginOpCounter, counter)) return 0;
  return impl::read_word(comm, impl::own_counter(comm, contextId, counter), bits, ord);
}

template <class Coop>
GIN_DEVICE_INLINE void Context::waitCounter(Coop coop, ginCounter_t counter, uint64_t least,
                                            int bits, memory_order ord) const {
  if (coop.thread_rank() == 0 && impl::is_counter(comm, ginOpWaitCounter, counter)) {
    const impl::OwnWord word = impl::own_counter(comm, contextId, counter);
    ginWait wait = impl::wait_on(comm, ginOpWaitCounter, contextId, word, counter, least);
    uint64_t seen;
    impl::wait_at_least(wait, bits, impl::wait_order(ord), seen);
  }
  coop.sync();
}

GIN_DEVICE_INLINE void Context::resetCounter(ginCounter_t counter) const {
  if (!impl::is_counter(comm, ginOpCounter, counter)) return;
  const impl::OwnWord word = impl::own_counter(comm, contextId, counter);
  impl::reset_word(impl::counter_word(comm, contextId, counter), word.net,
                   impl::row_word(comm.netCounterBases, comm.countersPitch, contextId, counter));
}

}  // namespace gin

#endif
