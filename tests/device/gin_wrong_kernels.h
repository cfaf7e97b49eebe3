// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_GIN_WRONG_KERNELS_H
#define GIMLET_TESTS_GIN_WRONG_KERNELS_H

#include <gin/gin.h>

/// Ten kernels that take for granted what nobody promised, and the same ten mended. Two ranks send
/// to each other for a few rounds, a piece of a window at a time, and count what they find wrong.
/// The destination is zero before.
namespace gin_test {

constexpr unsigned kPieceThreads = 32;  // of a block: a piece is one int for each of them
constexpr std::size_t kPieceBytes = kPieceThreads * sizeof(int);
constexpr int kRounds = 4;
constexpr std::size_t kPieces = 4 * kRounds;

struct Stage {
  ginDevComm comm;
  ginWindow_t source;
  ginWindow_t dest;
  int* wrong;
};

/// What a rank sends in a round.
__device__ inline int value_of(int rank, int round) {
  return 100 * (round + 1) + rank;
}

/// One context of a rank, as its block uses it.
struct Side {
  Stage const& stage;
  gin::CoopCta block{};
  gin::Context gin;
  ginTeam_t world;
  int me;
  int other;

  __device__ explicit Side(Stage const& s, int context = 0)
      : stage(s),
        gin(s.comm, context),
        world(ginTeamWorld(s.comm)),
        me(s.comm.rank),
        other(1 - s.comm.rank) {}

  __device__ gin::BarrierSession<gin::CoopCta> barrier(std::uint32_t index = 0) const {
    return {block, gin, ginTeamTagWorld{}, index};
  }
  template <class Barrier>
  __device__ void meet(Barrier& barrier, gin::FenceLevel fence = gin::FenceLevel::None) const {
    barrier.sync(block, gin::memory_order_acq_rel, fence);
  }
  __device__ void fill(int piece, int value) const {
    auto* ints = static_cast<int*>(ginGetLocalPointer(stage.source, place(piece)));
    ints[threadIdx.x] = value;
  }
  /// Every round has pieces of its own: `each` of them.
  __device__ void fill_all(int each) const {
    for (int piece = 0; piece < each * kRounds; ++piece) fill(piece, value_of(me, piece / each));
  }
  template <class Action>
  __device__ void put(int piece, Action action) const {
    put(piece, piece, action);
  }
  template <class Action>
  __device__ void put(int to, int from, Action action) const {
    gin.put(world, other, stage.dest, place(to), stage.source, place(from), kPieceBytes, action,
            gin::None{}, block);
  }
  __device__ void expect(int piece, int value) const {
    const auto* ints = static_cast<const int*>(ginGetLocalPointer(stage.dest, place(piece)));
    if (ints[threadIdx.x] != value) __atomic_fetch_add(stage.wrong, 1, __ATOMIC_RELAXED);
  }
  __device__ static std::size_t place(int piece) {
    return static_cast<std::size_t>(piece) * kPieceBytes;
  }
};

/// The weak or the strong of the two.
template <bool kStrong>
struct SignalOf {
  using Inc = gin::WeakSignalInc;
};
template <>
struct SignalOf<true> {
  using Inc = gin::StrongSignalInc;
};

/// The source of a put is overwritten before a flush.
template <bool kMended>
__global__ void source_reused(Stage stage) {
  const Side side(stage);
  auto barrier = side.barrier();
  for (int round = 0; round < kRounds; ++round) {
    side.fill(0, value_of(side.me, round));
    side.put(round, 0, gin::WeakSignalInc{0});
    if (kMended) side.gin.flush(side.block);
    side.fill(0, -1);
    side.gin.waitSignal(side.block, 0, static_cast<std::uint64_t>(round + 1));
    side.expect(round, value_of(side.other, round));
    side.meet(barrier);
  }
}

/// The signal of the second put is taken for that of both.
template <bool kMended>
__global__ void weak_for_strong(Stage stage) {
  const Side side(stage);
  auto barrier = side.barrier();
  side.fill_all(2);
  for (int round = 0; round < kRounds; ++round) {
    side.put(2 * round, gin::None{});
    side.put(2 * round + 1, typename SignalOf<kMended>::Inc{0});
    side.gin.waitSignal(side.block, 0, static_cast<std::uint64_t>(round + 1));
    side.expect(2 * round, value_of(side.other, round));
    side.expect(2 * round + 1, value_of(side.other, round));
    side.meet(barrier);
  }
}

/// signal() is weak, and there is a put before it.
template <bool kMended>
__global__ void weak_signal_alone(Stage stage) {
  const Side side(stage);
  auto barrier = side.barrier();
  side.fill_all(1);
  for (int round = 0; round < kRounds; ++round) {
    side.put(round, gin::None{});
    side.gin.signal(side.world, side.other, typename SignalOf<kMended>::Inc{0}, side.block);
    side.gin.waitSignal(side.block, 0, static_cast<std::uint64_t>(round + 1));
    side.expect(round, value_of(side.other, round));
    side.meet(barrier);
  }
}

/// Two puts raise one signal, and the first increment is taken for that of the first put.
template <bool kMended>
__global__ void counted_signals(Stage stage) {
  const Side side(stage);
  auto barrier = side.barrier();
  side.fill_all(2);
  for (int round = 0; round < kRounds; ++round) {
    const auto before = static_cast<std::uint64_t>(2 * round);
    side.put(2 * round, gin::WeakSignalInc{0});
    side.put(2 * round + 1, gin::WeakSignalInc{0});
    side.gin.waitSignal(side.block, 0, before + (kMended ? 2 : 1));
    side.expect(2 * round, value_of(side.other, round));
    side.gin.waitSignal(side.block, 0, before + 2);
    side.expect(2 * round + 1, value_of(side.other, round));
    side.meet(barrier);
  }
}

/// What a get brings is read before a flush.
template <bool kMended>
__global__ void get_not_flushed(Stage stage) {
  const Side side(stage);
  auto barrier = side.barrier();
  side.fill_all(1);
  side.meet(barrier);
  for (int round = 0; round < kRounds; ++round) {
    side.gin.get(side.world, side.other, stage.source, Side::place(round), stage.dest,
                 Side::place(round), kPieceBytes, side.block);
    if (kMended) side.gin.flush(side.block);
    side.expect(round, value_of(side.other, round));
  }
  side.gin.flush(side.block);
  side.meet(barrier);
}

/// A strong signal of one context for a put of another.
template <bool kMended>
__global__ void wrong_context(Stage stage) {
  const Side side(stage, 0);
  const Side signals(stage, kMended ? 0 : 1);
  auto barrier = side.barrier();
  side.fill_all(1);
  for (int round = 0; round < kRounds; ++round) {
    side.put(round, gin::None{});
    signals.gin.signal(side.world, side.other, gin::StrongSignalInc{0}, side.block);
    signals.gin.waitSignal(side.block, 0, static_cast<std::uint64_t>(round + 1));
    side.expect(round, value_of(side.other, round));
    side.meet(barrier);
  }
}

/// Two signals change parts from round to round: one announces data, the other is a hint that needs
/// no wait. Both are reset for the next round, while the hint may be under way.
template <bool kMended>
__global__ void reset_in_flight(Stage stage) {
  const Side side(stage);
  auto barrier = side.barrier();
  side.fill_all(1);
  for (int round = 0; round < kRounds; ++round) {
    const auto data = static_cast<ginSignal_t>(round % 2);
    const ginSignal_t hint = 1 - data;
    side.put(round, gin::WeakSignalInc{data});
    side.gin.signal(side.world, side.other, gin::WeakSignalInc{hint}, side.block);
    side.gin.waitSignal(side.block, data, 1);
    if (kMended) side.gin.waitSignal(side.block, hint, 1);
    side.expect(round, value_of(side.other, round));
    if (threadIdx.x == 0) side.gin.resetSignal(data);
    if (threadIdx.x == 0) side.gin.resetSignal(hint);
    side.meet(barrier);
  }
}

/// Each round puts to the same place, and does not ask whether the other rank is done with it.
template <bool kMended>
__global__ void no_entry_barrier(Stage stage) {
  const Side side(stage);
  auto barrier = side.barrier();
  for (int round = 0; round < kRounds; ++round) {
    side.fill(0, value_of(side.me, round));
    if (kMended) side.meet(barrier);
    side.put(0, gin::WeakSignalInc{0});
    side.gin.waitSignal(side.block, 0, static_cast<std::uint64_t>(round + 1));
    side.expect(0, value_of(side.other, round));
    side.gin.flush(side.block);
  }
}

/// A barrier without the Put fence stands behind a put.
template <bool kMended>
__global__ void no_put_fence(Stage stage) {
  const Side side(stage);
  auto barrier = side.barrier();
  side.fill_all(1);
  for (int round = 0; round < kRounds; ++round) {
    side.put(round, gin::None{});
    side.meet(barrier, kMended ? gin::FenceLevel::Put : gin::FenceLevel::None);
    side.expect(round, value_of(side.other, round));
  }
}

/// Both blocks meet at the same barrier.
template <bool kMended>
__global__ void one_barrier_index(Stage stage) {
  const Side side(stage);
  auto barrier = side.barrier(kMended ? blockIdx.x : 0);
  const int piece = static_cast<int>(blockIdx.x) * kRounds;
  for (int round = 0; round < kRounds; ++round) {
    side.fill(piece + round, value_of(side.me, round));
    side.put(piece + round, gin::None{});
    side.meet(barrier, gin::FenceLevel::Put);
    side.expect(piece + round, value_of(side.other, round));
  }
}

using WrongKernel = void (*)(Stage);
struct WrongCase {
  const char* name;
  WrongKernel wrong;
  WrongKernel mended;
  unsigned blocks;
};

inline const WrongCase kWrongCases[] = {
    {"source reused before flush", source_reused<false>, source_reused<true>, 1},
    {"weak where strong is needed", weak_for_strong<false>, weak_for_strong<true>, 1},
    {"weak signal() for earlier puts", weak_signal_alone<false>, weak_signal_alone<true>, 1},
    {"several signals counted with one >=", counted_signals<false>, counted_signals<true>, 1},
    {"get read before flush", get_not_flushed<false>, get_not_flushed<true>, 1},
    {"wrong context", wrong_context<false>, wrong_context<true>, 1},
    {"reset in flight", reset_in_flight<false>, reset_in_flight<true>, 1},
    {"entry barrier missing", no_entry_barrier<false>, no_entry_barrier<true>, 1},
    {"Put fence missing", no_put_fence<false>, no_put_fence<true>, 1},
    {"two sessions on one index", one_barrier_index<false>, one_barrier_index<true>, 2},
};

}  // namespace gin_test

#endif
