// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_RING_H
#define GIMLET_GIN_IMPL_RING_H

#include "gin/impl/fault.h"
#include "gin/impl/ring_layout.h"

/// Device side of the ring to the proxy thread; ring_layout.h has the rules.
///
/// GIN_MUTANT_PHASE_FIRST, for tests only: the phase of a slot is stored before the rest of it.
namespace gin {
namespace impl {

/// What a wait on a word of this rank is about.
GIN_DEVICE_INLINE ginWait wait_on(ginDevComm const& comm, ginOperation operation, uint32_t context,
                                  const uint64_t* word, uint64_t index, uint64_t awaited) {
  ginWait wait = {};
  wait.comm = &comm;
  wait.word = word;
  wait.operation = operation;
  wait.context = context;
  wait.index = index;
  wait.awaited = awaited;
  wait.peer = -1;
  return wait;
}

/// The number of the next slot, which from now on belongs to the caller.
GIN_DEVICE_INLINE uint64_t reserve_slot(struct ginRing& ring, ginResourceSharingMode sharing) {
  if (sharing != GIN_RESOURCE_SHARING_THREAD) return fetch_add(&ring.head, 1);
  const uint64_t number = load(&ring.head, Order::kRelaxed);
  store(&ring.head, number + 1);
  return number;
}

GIN_DEVICE_INLINE bool has_credit(struct ginRing const& ring, uint64_t number) {
  return number < load(&ring.credit, Order::kAcquire) + ring.depth;
}

/// One thread asks for all that wait: the word is far away from a GPU.
GIN_DEVICE_INLINE void refresh_credit(struct ginRing& ring) {
  if (load(&ring.refreshing, Order::kRelaxed) != 0 || !replace(&ring.refreshing, 0u, 1u)) return;
  // Releases what the acquire took: the proxy has read the slots.
  store_release(&ring.credit, load(&ring.progress->consumed, Order::kAcquire));
  store_release(&ring.refreshing, uint32_t{0});
}

#ifdef GIN_MUTANT_PHASE_FIRST
GIN_DEVICE_INLINE void write_slot(struct ginRing const& ring, uint64_t number,
                                  RingRequest const& request) {
  uint64_t words[8];
  encode_slot(request, ring_phase(number, ring.depth), words);
  uint64_t* slot = ring.slots[number & (ring.depth - 1)].words;
  for (int i = 7; i >= 0; --i) store(slot + i, words[i]);
}
#else
GIN_DEVICE_INLINE void write_slot(struct ginRing const& ring, uint64_t number,
                                  RingRequest const& request) {
  uint64_t words[8];
  encode_slot(request, ring_phase(number, ring.depth), words);
  uint64_t* slot = ring.slots[number & (ring.depth - 1)].words;
#ifdef __CUDACC__
  // What the request refers to, before the slot: the CPU may take each quarter as it comes.
  __threadfence_system();
#endif
  for (int i = 0; i < 7; ++i) store(slot + i, words[i]);
  // Taken by the proxy's acquire of this word: the slot, and what the request refers to.
  store_release(slot + 7, words[7]);
}
#endif

GIN_DEVICE_INLINE void wake_proxy(ginDevComm const& comm, uint32_t context) {
#ifndef __CUDACC__
  // The proxy orders its `parked` before its last look at the slots for both sides.
  if (load(comm.rings[context].parked, Order::kRelaxed) != 0)
    gin_exec_comm_wake_proxy(&comm, context);
#endif
}

/// Takes the next number, or has it already (not GIN_RING_NONE). True: its slot is free.
///
/// On a GPU a thread draws its number first and waits then: one addition, however many there are.
/// On the executor a thread may be ended where it waits, and a slot that is taken and never written
/// stops the ring; so a number is taken only with its slot.
GIN_DEVICE_INLINE bool take_slot(struct ginRing& ring, ginResourceSharingMode sharing,
                                 uint64_t& number) {
#ifdef __CUDACC__
  if (number == GIN_RING_NONE) number = reserve_slot(ring, sharing);
  return has_credit(ring, number);
#else
  for (;;) {
    number = load(&ring.head, Order::kRelaxed);
    if (!has_credit(ring, number)) return false;
    if (sharing == GIN_RESOURCE_SHARING_THREAD) {
      store(&ring.head, number + 1);
      return true;
    }
    if (replace(&ring.head, number, number + 1)) return true;
  }
#endif
}

/// Hands a request over, when there is room. False: the communicator has failed.
GIN_DEVICE_INLINE bool post(ginDevComm const& comm, uint32_t context,
                            ginResourceSharingMode sharing, RingRequest const& request) {
  struct ginRing& ring = comm.rings[context];
  uint64_t number = GIN_RING_NONE;
  ginWait wait = wait_on(comm, ginOpPost, context, &ring.credit, 0, 0);
  // The slot is written inside the loop: threads of a warp that have room must not wait for others
  // that need it written first.
  for (;;) {
    if (take_slot(ring, sharing, number)) {
      write_slot(ring, number, request);
      wake_proxy(comm, context);
      return true;
    }
    refresh_credit(ring);
    if (has_credit(ring, number)) continue;
    if (has_failed(comm)) return false;
    wait.awaited = number - ring.depth + 1;
    wait_step(wait, load(&ring.credit, Order::kRelaxed));
  }
}

/// The number behind the last request that happens before this call.
GIN_DEVICE_INLINE uint64_t posted_so_far(ginDevComm const& comm, uint32_t context) {
  return comm.rings == nullptr ? 0 : load(&comm.rings[context].head, Order::kRelaxed);
}

/// Waits until all requests of a context before `number` are complete. False: it failed, or the
/// limit is over.
GIN_DEVICE_INLINE bool wait_done(ginDevComm const& comm, uint32_t context, uint64_t number,
                                 Order order, uint64_t limit) {
  if (comm.rings == nullptr) return true;
  const uint64_t* done = &comm.rings[context].progress->done;
  ginWait wait = wait_on(comm, ginOpFlush, context, done, 0, number);
  wait.limit = limit;
  uint64_t seen;
  return wait_at_least(wait, 64, order, seen);
}

/// The same for the requests to one peer.
GIN_DEVICE_INLINE bool wait_peer_done(ginDevComm const& comm, uint32_t context, int world,
                                      uint64_t number, Order order) {
  struct ginRing const& ring = comm.rings[context];
  ginWait wait = wait_on(comm, ginOpFlush, context, &ring.progress->consumed, 0, number);
  wait.peer = world;
  uint64_t seen;
  if (!wait_at_least(wait, 64, Order::kAcquire, seen)) return false;
  wait.word = ring.oldest + world;
  return wait_at_least(wait, 64, order, seen);
}

}  // namespace impl
}  // namespace gin

#endif
