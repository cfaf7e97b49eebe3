// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_BARRIER_H
#define GIMLET_GIN_IMPL_BARRIER_H

#include "gin/impl/barrier_layout.h"

namespace gin {
namespace impl {

/// The words of one barrier as one rank sees them. Every word counts the barriers of the one rank
/// that adds to it, and the shadow of a word counts those that this rank waited for. A rank is at
/// most one barrier ahead of another, so a 32-bit rolling comparison tells.
struct BarrierWords {
  ginDevComm const& comm;
  uint32_t context;
  ginTeam_t team;
  ginSignal_t first;
  Order release;
  Order acquire;

  /// Tells a member that this rank is here. The release publishes what this rank's coop did before
  /// the barrier, puts included, and what it acquired from others; taken by wait_for().
  GIN_DEVICE_INLINE void tell(int member, uint32_t word) const {
    const int world = ginTeamRankToWorld(comm, team, member);
    add(signal_word(comm, world, context, first + word), 1, release);
  }

  GIN_DEVICE_INLINE bool wait_for(int member, uint32_t word, struct ginWait& wait) const {
    uint64_t* epoch = shadow_word(comm, context, first + word);
    wait.awaited = low_bits(load(epoch, Order::kRelaxed) + 1, 32);
    store(epoch, wait.awaited);
    wait.word = signal_word(comm, comm.rank, context, first + word);
    wait.peer = ginTeamRankToWorld(comm, team, member);
    uint64_t seen;
    return wait_at_least(wait, 32, acquire, seen);
  }
};

/// The threads of the coop share the members.
GIN_DEVICE_INLINE bool meet_all(BarrierWords const& words, Share share, struct ginWait& wait) {
  const int step = static_cast<int>(share.count);
  const int self = words.team.rank;
  for (int member = static_cast<int>(share.index); member < words.team.nRanks; member += step) {
    if (member != self) words.tell(member, static_cast<uint32_t>(self));
  }
  for (int member = static_cast<int>(share.index); member < words.team.nRanks; member += step) {
    if (member == self) continue;
    if (!words.wait_for(member, static_cast<uint32_t>(member), wait)) return false;
  }
  return true;
}

/// In round k a rank tells the one 2^k above and waits for the one 2^k below. Each round acquires
/// before the next one releases, so what any rank released reaches all.
GIN_DEVICE_INLINE bool meet_in_rounds(BarrierWords const& words, struct ginWait& wait) {
  const int ranks = words.team.nRanks;
  const int self = words.team.rank;
  const uint32_t rounds = dissemination_rounds(ranks);
  for (uint32_t round = 0; round < rounds; ++round) {
    const int distance = 1 << round;
    words.tell((self + distance) % ranks, round);
    if (!words.wait_for((self - distance + ranks) % ranks, round, wait)) return false;
  }
  return true;
}

}  // namespace impl

template <class Coop>
GIN_DEVICE_INLINE BarrierSession<Coop>::BarrierSession(Context const& context, ginTeam_t team,
                                                       ginBarrierHandle_t handle, uint32_t index,
                                                       uint32_t count)
    : context_(context), team_(team), first_(0), index_(index), valid_(false) {
  ginDevComm const& comm = context.comm;
  const uint64_t pitch = impl::barrier_pitch(team.nRanks);
  if (index >= count || handle.signal0 + (index + 1) * pitch > comm.ginSignalCount) {
    impl::fault_of(comm, ginOpBarrier, ginFaultBarrier, -1, index, 0, count);
    return;
  }
  first_ = handle.signal0 + static_cast<uint32_t>(index * pitch);
  valid_ = true;
}

template <class Coop>
GIN_DEVICE_INLINE BarrierSession<Coop>::BarrierSession(Coop, Context const& context, ginTeam_t team,
                                                       ginBarrierHandle_t handle, uint32_t index)
    : BarrierSession(
          context, team, handle, index,
          (context.comm.ginSignalCount - handle.signal0) / impl::barrier_pitch(team.nRanks)) {}

template <class Coop>
GIN_DEVICE_INLINE BarrierSession<Coop>::BarrierSession(Coop, Context const& context,
                                                       ginTeamTagWorld, uint32_t index)
    : BarrierSession(context, ginTeamWorld(context.comm), context.comm.worldGinBarrier, index,
                     context.comm.worldGinBarrierCount) {}

template <class Coop>
GIN_DEVICE_INLINE BarrierSession<Coop>::BarrierSession(Coop, Context const& context, ginTeamTagRail,
                                                       uint32_t index)
    : BarrierSession(context, ginTeamRail(context.comm), context.comm.railGinBarrier, index,
                     context.comm.railGinBarrierCount) {}

// On the direct path a release covers everything that happened before it, whatever the context.
template <class Coop>
GIN_DEVICE_INLINE BarrierSession<Coop>::BarrierSession(Coop coop, AllContexts contexts,
                                                       ginTeam_t team, ginBarrierHandle_t handle,
                                                       uint32_t index)
    : BarrierSession(coop, Context(contexts.comm, 0), team, handle, index) {}

template <class Coop>
GIN_DEVICE_INLINE BarrierSession<Coop>::BarrierSession(Coop coop, AllContexts contexts,
                                                       ginTeamTagWorld tag, uint32_t index)
    : BarrierSession(coop, Context(contexts.comm, 0), tag, index) {}

template <class Coop>
GIN_DEVICE_INLINE BarrierSession<Coop>::BarrierSession(Coop coop, AllContexts contexts,
                                                       ginTeamTagRail tag, uint32_t index)
    : BarrierSession(coop, Context(contexts.comm, 0), tag, index) {}

template <class Coop>
GIN_DEVICE_INLINE bool BarrierSession<Coop>::meet(Coop const& coop, memory_order order,
                                                  FenceLevel fence, struct ginWait& wait) {
  ginDevComm const& comm = context_.comm;
  if (!valid_ || impl::has_failed(comm)) return false;
  if (team_.nRanks == 1) return true;
  const bool put = (fence & FenceLevel::Put) != FenceLevel::None;
  const bool releases = put || impl::has_release(order);
  const bool acquires = put || impl::has_acquire(order);
  const impl::BarrierWords words = {comm,
                                    context_.contextId,
                                    team_,
                                    first_,
                                    releases ? impl::kStrongSignalOrder : impl::Order::kRelaxed,
                                    acquires ? impl::kWaitOrder : impl::Order::kRelaxed};
  if (team_.nRanks <= impl::kAllToAllRanks) {
    return impl::meet_all(words, impl::share_of(coop), wait);
  }
  return coop.thread_rank() != 0 || impl::meet_in_rounds(words, wait);
}

template <class Coop>
GIN_DEVICE_INLINE void BarrierSession<Coop>::sync(Coop coop, memory_order order, FenceLevel fence) {
  coop.sync();
  ginWait wait = impl::wait_on(context_.comm, ginOpBarrier, context_.contextId, nullptr, index_, 0);
  meet(coop, order, fence, wait);
  coop.sync();
}

// Threads that gave up say so in the scratch word between two syncs, so that all return the same.
template <class Coop>
GIN_DEVICE_INLINE ginResult_t BarrierSession<Coop>::sync(Coop coop, memory_order order,
                                                         FenceLevel fence, uint64_t timeoutCycles) {
  ginDevComm const& comm = context_.comm;
  coop.sync();
  if (!valid_) return ginInvalidArgument;
  uint64_t* scratch =
      impl::shadow_word(comm, context_.contextId, first_ + impl::barrier_words(team_.nRanks));
  ginWait wait = impl::wait_on(comm, ginOpBarrier, context_.contextId, nullptr, index_, 0);
  wait.limit = timeoutCycles;
  if (!meet(coop, order, fence, wait)) {
    const bool failed = impl::has_failed(comm);
    impl::add(scratch, failed ? uint64_t{1} << 32 : 1, impl::Order::kRelaxed);
  }
  coop.sync();
  const uint64_t gave_up = impl::load(scratch, impl::Order::kRelaxed);
  coop.sync();
  if (coop.thread_rank() == 0) impl::store(scratch, uint64_t{0});
  if (gave_up == 0) return ginSuccess;
  if (gave_up >> 32 == 0) return ginTimeout;
  return impl::load(&comm.error->state, impl::Order::kAcquire) == ginErrorSet
             ? static_cast<ginResult_t>(comm.error->code)
             : ginInternalError;
}

}  // namespace gin

#endif
