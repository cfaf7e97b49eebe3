// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_BARRIER_H
#define GIMLET_GIN_BARRIER_H

#include "gin/context.h"
#include "gin/result.h"

namespace gin {

/// What a barrier guarantees besides the meeting of its ranks, for operations of its context.
/// Put: puts that members made towards this rank before they entered are visible here, its own
/// included. Get: gets that this rank made before it entered are here.
enum class FenceLevel : uint32_t { None = 0, Put = 1, Get = 2, Relaxed = None };

GIN_HOST_DEVICE_INLINE constexpr FenceLevel operator|(FenceLevel a, FenceLevel b) {
  return static_cast<FenceLevel>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
GIN_HOST_DEVICE_INLINE constexpr FenceLevel operator&(FenceLevel a, FenceLevel b) {
  return static_cast<FenceLevel>(static_cast<uint32_t>(a) & static_cast<uint32_t>(b));
}

/// In place of a context: the barrier's guarantees then hold for all contexts of the DevComm.
struct AllContexts {
  ginDevComm const& comm;
  GIN_DEVICE_INLINE explicit AllContexts(ginDevComm const& devComm) : comm(devComm) {}
};

/// A barrier of the ranks of a team, one of the `count` that its handle stands for: blocks with
/// different indexes meet independently of each other, the same index on every rank. One coop at a
/// time uses a (handle, index).
///
/// Up to 32 ranks signal each other at once; above, in ceil(log2 n) rounds.
template <class Coop>
class BarrierSession {
 public:
  GIN_DEVICE_INLINE BarrierSession(Coop coop, Context const& context, ginTeam_t team,
                                   ginBarrierHandle_t handle, uint32_t index);
  /// Of all ranks: one of ginDevCommRequirements::worldGinBarrierCount.
  GIN_DEVICE_INLINE BarrierSession(Coop coop, Context const& context, ginTeamTagWorld,
                                   uint32_t index);
  /// Of the rail: one of ginDevCommRequirements::railGinBarrierCount.
  GIN_DEVICE_INLINE BarrierSession(Coop coop, Context const& context, ginTeamTagRail,
                                   uint32_t index);
  GIN_DEVICE_INLINE BarrierSession(Coop coop, AllContexts contexts, ginTeam_t team,
                                   ginBarrierHandle_t handle, uint32_t index);
  GIN_DEVICE_INLINE BarrierSession(Coop coop, AllContexts contexts, ginTeamTagWorld,
                                   uint32_t index);
  GIN_DEVICE_INLINE BarrierSession(Coop coop, AllContexts contexts, ginTeamTagRail, uint32_t index);
  BarrierSession(BarrierSession const&) = delete;
  BarrierSession& operator=(BarrierSession const&) = delete;

  /// Returns when every rank of the team has entered. Memory is released on entry and acquired on
  /// return as `order` says, and as the fence level needs.
  GIN_DEVICE_INLINE void sync(Coop coop, memory_order order,
                              FenceLevel fence = FenceLevel::Put | FenceLevel::Get);

  /// The same, but gives up: ginTimeout when a wait lasts more than timeoutCycles of clock64()
  /// (nanoseconds on the CPU executor); the session's barrier can't be used again after that. The
  /// error's code when the communicator has failed. The same result in all threads.
  GIN_DEVICE_INLINE ginResult_t sync(Coop coop, memory_order order, FenceLevel fence,
                                     uint64_t timeoutCycles);

 private:
  GIN_DEVICE_INLINE BarrierSession(Context const& context, ginTeam_t team,
                                   ginBarrierHandle_t handle, uint32_t index, uint32_t count);
  GIN_DEVICE_INLINE bool meet(Coop const& coop, memory_order order, FenceLevel fence,
                              struct ginWait& wait);
  GIN_DEVICE_INLINE bool meet_on(uint32_t context, Coop const& coop, memory_order order,
                                 FenceLevel fence, struct ginWait& wait);

  Context context_;
  ginTeam_t team_;
  ginSignal_t first_; /* of this barrier's signals */
  uint32_t index_;
  bool valid_;
  bool all_contexts_ = false;
};

}  // namespace gin

#include "gin/impl/barrier.h"

#endif
