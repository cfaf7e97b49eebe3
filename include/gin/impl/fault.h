// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_FAULT_H
#define GIMLET_GIN_IMPL_FAULT_H

#include "gin/impl/atomic.h"
#include "gin/impl/device.h"
#include "gin/impl/tables.h"
#include "gin/result.h"

#ifndef __CUDACC__
#include "gin/impl/hooks.h"
#endif

/// The error word: what bad operations set, and what every wait and operation looks at.
namespace gin {
namespace impl {

#ifdef __CUDACC__

GIN_DEVICE_INLINE void end_launch(ginDevComm const&) {
  __trap();
}

GIN_DEVICE_INLINE void set_error(struct ginErrorWord* word, int code, int rank,
                                 struct ginFault const& fault) {
  if (!replace(&word->state, uint32_t{ginErrorFine}, uint32_t{ginErrorWriting})) return;
  word->code = code;
  word->rank = rank;
  word->peer = fault.peer;
  word->operation = fault.operation;
  word->offset = static_cast<uint64_t>(fault.value);
  // Taken by the host's acquire load of the state.
  SystemRef<uint32_t>(word->state).store(ginErrorSet, memory_order_release);
}

GIN_DEVICE_INLINE void report_fault(ginDevComm const& comm, struct ginFault const& fault) {
  set_error(comm.error, ginInvalidArgument, comm.rank, fault);
  for (int rank = 0; rank < comm.nRanks; ++rank) {
    const uint32_t slot = ginMappedSlot(comm.peerSlots[rank]);
    if (slot >= GIN_PROXY_SLOT || rank == comm.rank) continue;
    set_error(reinterpret_cast<ginErrorWord*>(comm.resourceWindow->peers[slot].base),
              ginRemoteError, comm.rank, fault);
  }
}

GIN_DEVICE_INLINE int wait_step(struct ginWait& wait, uint64_t) {
  if (wait.limit == 0) return 0;
  const uint64_t now = static_cast<uint64_t>(clock64());
  if (wait.started == 0) wait.started = now;
  return now - wait.started > wait.limit ? static_cast<int>(ginTimeout) : 0;
}

GIN_DEVICE_INLINE void note_look(const uint64_t*, uint64_t) {}

#else

GIN_DEVICE_INLINE void end_launch(ginDevComm const& comm) {
  gin_exec_comm_trap(&comm);
}

GIN_DEVICE_INLINE void report_fault(ginDevComm const& comm, struct ginFault const& fault) {
  gin_exec_comm_fault(&comm, &fault);
}

GIN_DEVICE_INLINE int wait_step(struct ginWait& wait, uint64_t seen) {
  return gin_exec_comm_wait(&wait, seen);
}

GIN_DEVICE_INLINE void note_look(const uint64_t* word, uint64_t seen) {
  gin_exec_look(word, seen);
}

#endif

/// Where the communicator is to trap on errors, this does not return when it has failed.
GIN_DEVICE_INLINE bool has_failed(ginDevComm const& comm) {
  if (load(&comm.error->state, Order::kRelaxed) == ginErrorFine) return false;
  if (comm.trapsOnError != 0) end_launch(comm);
  return true;
}

/// a <= b when only the low `bits` bits count and they roll over.
GIN_DEVICE_INLINE bool rolling_at_most(uint64_t a, uint64_t b, int bits) {
  const uint64_t mask = ~uint64_t{0} >> (64 - bits);
  return ((b - a) & mask) <= mask >> 1;
}

GIN_DEVICE_INLINE uint64_t low_bits(uint64_t value, int bits) {
  return value & (~uint64_t{0} >> (64 - bits));
}

/// Waits until the word is at least wait.awaited, in a rolling comparison. The acquire takes what
/// the release of the signal's add published. False when the communicator failed or the wait's own
/// limit is over; `seen` is the last value in any case.
GIN_DEVICE_INLINE bool wait_at_least(struct ginWait& wait, int bits, Order order, uint64_t& seen) {
  for (;;) {
    seen = load(wait.word, order);
    if (wait.net != nullptr) seen += load(wait.net, order) - wait.net_base;
    if (rolling_at_most(wait.awaited, seen, bits)) return true;
    if (has_failed(*wait.comm)) return false;
    if (wait_step(wait, seen) != 0) return false;
  }
}

}  // namespace impl
}  // namespace gin

#endif
