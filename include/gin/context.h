// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_CONTEXT_H
#define GIMLET_GIN_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "gin/action.h"
#include "gin/coop.h"
#include "gin/dev_comm.h"
#include "gin/platform.h"
#include "gin/team.h"
#include "gin/window.h"

namespace gin {

/// A way for kernels to move data between ranks: put, get, signals and counters, one-sided.
///
/// A lane is (context, peer). Operations of one lane that happen before one another (program order,
/// coop sync, release and acquire at device scope) start in that order; two puts have no order of
/// arrival. Offsets and sizes are bytes of the windows of the ranks concerned. Every operation is
/// checked against the peer's window; a bad one is not carried out, sets the communicator's error
/// word with one sentence and ends all waits (ginCommGetAsyncError()). After that operations and
/// waits do nothing.
///
/// Cheap to build, in every thread that wants one. Holds a reference to the DevComm.
class Context {
 public:
  GIN_DEVICE_INLINE Context(ginDevComm const& devComm, int contextIndex,
                            ginResourceSharingMode mode = GIN_RESOURCE_SHARING_GPU);

  /// Copies `bytes` from the own window to the peer's, then does the actions. On return the
  /// transfer has started; the source may be changed after flush, or when the counter of the local
  /// action has moved. Zero bytes are allowed: only the actions happen. A peer may be the caller.
  ///
  /// givenRelease: how far the caller has already released its writes to the source.
  /// requiredRelease: how far the reader of the source needs them. The difference is made up here.
  template <class RemoteAction = None, class LocalAction = None, class Coop = CoopThread,
            class DescriptorSmem = None, class SegmentType = SegmentDevice>
  GIN_DEVICE_INLINE void put(ginTeam_t team, int peer, ginWindow_t dstWnd, size_t dstOffset,
                             ginWindow_t srcWnd, size_t srcOffset, size_t bytes,
                             RemoteAction remoteAction = RemoteAction{},
                             LocalAction localAction = LocalAction{}, Coop coop = Coop{},
                             DescriptorSmem descriptor = DescriptorSmem{},
                             thread_scope givenRelease = thread_scope_thread,
                             thread_scope requiredRelease = thread_scope_device,
                             uint32_t optFlags = ginOptFlagsDefault,
                             SegmentType bufType = SegmentType{}) const;

  /// The same for nElts elements.
  template <class T, class RemoteAction = None, class LocalAction = None, class Coop = CoopThread,
            class DescriptorSmem = None, class SegmentType = SegmentDevice>
  GIN_DEVICE_INLINE void put(ginTeam_t team, int peer, SymPtr<T> dstElts, SymPtr<T> srcElts,
                             size_t nElts, RemoteAction remoteAction = RemoteAction{},
                             LocalAction localAction = LocalAction{}, Coop coop = Coop{},
                             DescriptorSmem descriptor = DescriptorSmem{},
                             thread_scope givenRelease = thread_scope_thread,
                             thread_scope requiredRelease = thread_scope_device,
                             uint32_t optFlags = ginOptFlagsDefault,
                             SegmentType bufType = SegmentType{}) const;

  /// Writes one value of at most 8 bytes; it arrives whole where it is aligned to its size.
  template <class T, class RemoteAction = None, class Coop = CoopThread,
            class DescriptorSmem = None>
  GIN_DEVICE_INLINE void putValue(ginTeam_t team, int peer, ginWindow_t dstWnd, size_t dstOffset,
                                  T value, RemoteAction remoteAction = RemoteAction{},
                                  Coop coop = Coop{}, DescriptorSmem descriptor = DescriptorSmem{},
                                  thread_scope givenRelease = thread_scope_thread,
                                  thread_scope requiredRelease = thread_scope_device,
                                  uint32_t optFlags = ginOptFlagsDefault) const;
  template <class T, class RemoteAction = None, class Coop = CoopThread,
            class DescriptorSmem = None>
  GIN_DEVICE_INLINE void putValue(ginTeam_t team, int peer, SymPtr<T> dst, T value,
                                  RemoteAction remoteAction = RemoteAction{}, Coop coop = Coop{},
                                  DescriptorSmem descriptor = DescriptorSmem{},
                                  thread_scope givenRelease = thread_scope_thread,
                                  thread_scope requiredRelease = thread_scope_device,
                                  uint32_t optFlags = ginOptFlagsDefault) const;

  /// Copies `bytes` from the peer's window to the own one; here after flush. The peer's writes must
  /// have been synchronised with this rank before.
  template <class Coop = CoopThread, class DescriptorSmem = None, class SegmentType = SegmentDevice>
  GIN_DEVICE_INLINE void get(ginTeam_t team, int peer, ginWindow_t remoteWnd, size_t remoteOffset,
                             ginWindow_t localWnd, size_t localOffset, size_t bytes,
                             Coop coop = Coop{}, DescriptorSmem descriptor = DescriptorSmem{},
                             uint32_t optFlags = ginOptFlagsDefault,
                             SegmentType bufType = SegmentType{}) const;

  /// Does a remote action alone. A strong one covers all earlier puts of the lane.
  template <class RemoteAction, class Coop = CoopThread, class DescriptorSmem = None>
  GIN_DEVICE_INLINE void signal(ginTeam_t team, int peer, RemoteAction action, Coop coop = Coop{},
                                DescriptorSmem descriptor = DescriptorSmem{},
                                thread_scope givenRelease = thread_scope_thread,
                                thread_scope requiredRelease = thread_scope_device,
                                uint32_t optFlags = ginOptFlagsDefault) const;

  /// Changes one word of the peer's window in one step: an integer of 4 or 8 bytes, aligned to its
  /// size. Excludes other atomic operations on the word, also OpenSHMEM's. To strong signals and
  /// fences it is a put; by itself it orders nothing. Not in NCCL; since 0.1.0.
  template <class T, class Coop = CoopThread>
  GIN_DEVICE_INLINE void atomic(AtomicOp op, ginTeam_t team, int peer, ginWindow_t window,
                                size_t offset, T operand, Coop coop = Coop{}) const;

  /// The same by one thread, which gets the word's old value and waits for it. `compare` is for
  /// CompareSwap. 0 when the communicator has failed.
  template <class T>
  GIN_DEVICE_INLINE T atomicFetch(AtomicOp op, ginTeam_t team, int peer, ginWindow_t window,
                                  size_t offset, T operand = T{}, T compare = T{}) const;

  /// Waits until the sources of all earlier operations of this context may be changed and all
  /// earlier gets are here. Says nothing of arrival at the peers.
  template <class Coop, class DescriptorSmem = None>
  GIN_DEVICE_INLINE void flush(Coop coop, memory_order ord = memory_order_acquire,
                               DescriptorSmem descriptor = DescriptorSmem{}) const;

  /// The same for one peer, in two steps: a request may be stored and waited for later, once.
  template <class Coop = CoopThread, class DescriptorSmem = None>
  GIN_DEVICE_INLINE void flushAsync(ginTeam_t team, uint32_t peer, ginRequest_t* outRequest,
                                    Coop coop = Coop{}, uint32_t optFlags = ginOptFlagsDefault,
                                    DescriptorSmem descriptor = DescriptorSmem{}) const;
  template <class Coop = CoopThread, class DescriptorSmem = None>
  GIN_DEVICE_INLINE void wait(ginRequest_t& request, Coop coop = Coop{},
                              DescriptorSmem descriptor = DescriptorSmem{},
                              memory_order ord = memory_order_acquire) const;

  /// Low `bits` bits of a signal of this rank: index signals of this context, or a word of a
  /// window.
  GIN_DEVICE_INLINE uint64_t readSignal(ginSignal_t signal, int bits = 64,
                                        memory_order ord = memory_order_acquire) const;
  GIN_DEVICE_INLINE uint64_t readSignal(ginWindow_t signalWindow, size_t signalOffset,
                                        int bits = 64,
                                        memory_order ord = memory_order_acquire) const;

  /// Waits until the signal is at least `least`. Comparison rolls over: it looks at the low `bits`
  /// bits and is right while the two are less than half their range apart.
  template <class Coop>
  GIN_DEVICE_INLINE void waitSignal(Coop coop, ginSignal_t signal, uint64_t least, int bits = 64,
                                    memory_order ord = memory_order_acquire) const;
  template <class Coop>
  GIN_DEVICE_INLINE void waitSignal(Coop coop, ginWindow_t signalWindow, size_t signalOffset,
                                    uint64_t least, int bits = 64,
                                    memory_order ord = memory_order_acquire) const;

  /// Shadows: a word per signal of a context for the program's own book-keeping; kept from kernel
  /// to kernel. MeetShadow waits until the signal is at least its shadow. FollowShadow waits until
  /// it is at least `leastDelta` above, sets the shadow to the value seen, and gives the shadow
  /// from before and the difference; one coop at a time follows one shadow.
  template <class Coop>
  GIN_DEVICE_INLINE void waitSignalMeetShadow(Coop coop, ginSignal_t signal, int bits = 64,
                                              memory_order ord = memory_order_acquire) const;
  template <class Coop, class Uint>
  GIN_DEVICE_INLINE void waitSignalFollowShadow(Coop coop, ginSignal_t signal, Uint leastDelta,
                                                Uint* before, Uint* delta, int bits = 64,
                                                memory_order ord = memory_order_acquire) const;
  GIN_DEVICE_INLINE uint64_t* getSignalShadowPtr(ginSignal_t signal) const;
  GIN_DEVICE_INLINE void increaseSignalShadow(ginSignal_t signal, uint64_t delta) const;

  /// Sets a signal (an index signal with its shadow) to zero. No increment may be under way.
  GIN_DEVICE_INLINE void resetSignal(ginSignal_t signal) const;
  GIN_DEVICE_INLINE void resetSignal(ginWindow_t signalWindow, size_t signalOffset) const;

  /// Counters of this context, which local actions raise; at most 56 bits.
  GIN_DEVICE_INLINE uint64_t readCounter(ginCounter_t counter, int bits = 56,
                                         memory_order ord = memory_order_acquire) const;
  template <class Coop>
  GIN_DEVICE_INLINE void waitCounter(Coop coop, ginCounter_t counter, uint64_t least, int bits = 56,
                                     memory_order ord = memory_order_acquire) const;
  GIN_DEVICE_INLINE void resetCounter(ginCounter_t counter) const;

  ginDevComm const& comm;
  uint32_t nConnections : 8;
  uint32_t connectionId : 8;
  uint32_t contextId;
  ginResourceSharingMode resourceSharingMode;
};

}  // namespace gin

#include "gin/impl/context.h"

#endif
