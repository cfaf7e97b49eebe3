// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_BARRIER_H
#define GIMLET_GIN_IMPL_BARRIER_H

#include "gin/impl/barrier_layout.h"

namespace gin {
namespace impl {

/// The words of one barrier as one rank sees them. Every pair of words counts the barriers of the
/// one rank that adds to it, by turns, and the shadow of the first counts those that this rank
/// waited for. A rank is at most one barrier ahead of another, so a word is not added to again
/// before it was waited for, and a 32-bit rolling comparison tells.
struct BarrierWords {
  ginDevComm const& comm;
  uint32_t context;
  ginResourceSharingMode sharing;
  ginTeam_t team;
  ginSignal_t first;
  bool fences_puts;
  Order release;
  Order acquire;

  /// Does this rank tell and wait for itself? Only where its own puts take a way round.
  GIN_DEVICE_INLINE bool skips_self() const { return !fences_puts || is_direct(comm, comm.rank); }

  GIN_DEVICE_INLINE uint64_t* epoch_of(uint32_t pair) const {
    return shadow_word(comm, context, first + 2 * pair);
  }
  /// The word of a pair for the barrier of that number, from 1 on.
  GIN_DEVICE_INLINE ginSignal_t word_of(uint32_t pair, uint64_t epoch) const {
    return first + 2 * pair + static_cast<ginSignal_t>(epoch % 2);
  }

  /// Tells a member that this rank is here, before the same thread waits for the pair `waited`. The
  /// release publishes what this rank's coop did before the barrier, puts included, and what it
  /// acquired from others; taken by wait_for(). Through a proxy a strong signal stands behind the
  /// puts of its lane.
  GIN_DEVICE_INLINE void tell(int member, uint32_t pair, uint32_t waited) const {
    const int world = ginTeamRankToWorld(comm, team, member);
    const ginSignal_t word = word_of(pair, load(epoch_of(waited), Order::kRelaxed) + 1);
    if (is_direct(comm, world)) {
      add(signal_word(comm, world, context, word), 1, release);
    } else {
      post_signal(comm, ginOpBarrier, context, sharing, world,
                  {SignalKind::kIndex, fences_puts, nullptr, word, 1});
    }
  }

  GIN_DEVICE_INLINE bool wait_for(int member, uint32_t pair, struct ginWait& wait) const {
    const uint64_t epoch = load(epoch_of(pair), Order::kRelaxed) + 1;
    store(epoch_of(pair), epoch);
    wait.awaited = low_bits((epoch + 1) / 2, 32);
    const OwnWord own = own_signal(comm, context, word_of(pair, epoch));
    wait.word = own.direct;
    wait.net = own.net;
    wait.net_base = own.net_base;
    wait.context = context;
    wait.peer = ginTeamRankToWorld(comm, team, member);
    uint64_t seen;
    return wait_at_least(wait, 32, acquire, seen);
  }
};

/// The threads of the coop share the members.
GIN_DEVICE_INLINE bool meet_all(BarrierWords const& words, Share share, struct ginWait& wait) {
  const int step = static_cast<int>(share.count);
  const int self = words.team.rank;
  const int skipped = words.skips_self() ? self : -1;
  for (int member = static_cast<int>(share.index); member < words.team.nRanks; member += step) {
    if (member == skipped) continue;
    words.tell(member, static_cast<uint32_t>(self), static_cast<uint32_t>(member));
  }
  for (int member = static_cast<int>(share.index); member < words.team.nRanks; member += step) {
    if (member == skipped) continue;
    if (!words.wait_for(member, static_cast<uint32_t>(member), wait)) return false;
  }
  return true;
}

/// In round k a rank tells the one 2^k above and waits for the one 2^k below. Each round acquires
/// before the next one releases, so what any rank released reaches all. Puts through proxies are at
/// their targets before the first round: no signal of a round stands behind another rank's puts.
GIN_DEVICE_INLINE bool meet_in_rounds(BarrierWords const& words, struct ginWait& wait) {
  const int ranks = words.team.nRanks;
  const int self = words.team.rank;
  const uint32_t rounds = dissemination_rounds(ranks);
  if (words.fences_puts && words.comm.rings != nullptr) {
    post_drain(words.comm, words.context, words.sharing, GIN_RING_ALL_PEERS);
    const uint64_t posted = posted_so_far(words.comm, words.context);
    if (!wait_done(words.comm, words.context, posted, words.acquire, wait.limit)) return false;
  }
  for (uint32_t round = 0; round < rounds; ++round) {
    const int distance = 1 << round;
    words.tell((self + distance) % ranks, round, round);
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

template <class Coop>
GIN_DEVICE_INLINE BarrierSession<Coop>::BarrierSession(Coop coop, AllContexts contexts,
                                                       ginTeam_t team, ginBarrierHandle_t handle,
                                                       uint32_t index)
    : BarrierSession(coop, Context(contexts.comm, 0), team, handle, index) {
  all_contexts_ = true;
}

template <class Coop>
GIN_DEVICE_INLINE BarrierSession<Coop>::BarrierSession(Coop coop, AllContexts contexts,
                                                       ginTeamTagWorld tag, uint32_t index)
    : BarrierSession(coop, Context(contexts.comm, 0), tag, index) {
  all_contexts_ = true;
}

template <class Coop>
GIN_DEVICE_INLINE BarrierSession<Coop>::BarrierSession(Coop coop, AllContexts contexts,
                                                       ginTeamTagRail tag, uint32_t index)
    : BarrierSession(coop, Context(contexts.comm, 0), tag, index) {
  all_contexts_ = true;
}

template <class Coop>
GIN_DEVICE_INLINE bool BarrierSession<Coop>::meet_on(uint32_t context, Coop const& coop,
                                                     memory_order order, FenceLevel fence,
                                                     struct ginWait& wait) {
  ginDevComm const& comm = context_.comm;
  const bool puts = (fence & FenceLevel::Put) != FenceLevel::None;
  const bool gets = (fence & FenceLevel::Get) != FenceLevel::None && comm.rings != nullptr;
  const bool releases = puts || impl::has_release(order);
  const bool acquires = puts || impl::has_acquire(order);
  const impl::BarrierWords words = {comm,
                                    context,
                                    context_.resourceSharingMode,
                                    team_,
                                    first_,
                                    puts,
                                    releases ? impl::kStrongSignalOrder : impl::Order::kRelaxed,
                                    acquires ? impl::kWaitOrder : impl::Order::kRelaxed};
  // Before anybody waits here: the coop has met, so all its gets have smaller numbers.
  const uint64_t posted = gets ? impl::posted_so_far(comm, context) : 0;
  if (team_.nRanks <= impl::kAllToAllRanks) {
    const bool alone = team_.nRanks == 1 && words.skips_self();
    if (!alone && !impl::meet_all(words, impl::share_of(coop), wait)) return false;
  } else if (coop.thread_rank() == 0 && !impl::meet_in_rounds(words, wait)) {
    return false;
  }
  if (!gets || coop.thread_rank() != 0) return true;
  return impl::wait_done(comm, context, posted, impl::kWaitOrder, wait.limit);
}

// On the direct path a release covers everything that happened before it, whatever the context. A
// signal through a proxy covers its own context only.
template <class Coop>
GIN_DEVICE_INLINE bool BarrierSession<Coop>::meet(Coop const& coop, memory_order order,
                                                  FenceLevel fence, struct ginWait& wait) {
  ginDevComm const& comm = context_.comm;
  if (!valid_ || impl::has_failed(comm)) return false;
  const bool each = all_contexts_ && comm.rings != nullptr && fence != FenceLevel::None;
  if (!each) return meet_on(context_.contextId, coop, order, fence, wait);
  for (uint32_t context = 0; context < comm.ginContextCount; ++context) {
    if (!meet_on(context, coop, order, fence, wait)) return false;
  }
  return true;
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
