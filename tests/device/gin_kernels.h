// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_GIN_KERNELS_H
#define GIMLET_TESTS_GIN_KERNELS_H

#include <gin/gin.h>

/// Kernels of the GIN tests. Ranks form a ring: each sends to the next and checks what the previous
/// one sent. `count` of a coop kind: how many coops of that kind make up a block of 64 threads.
namespace gin_test {

constexpr unsigned kThreads = 64;

template <class Coop>
struct Split;

template <int N>
struct Split<gin::CoopTile<N>> {
  static constexpr unsigned count = kThreads / N;
  __device__ static gin::CoopTile<N> coop() { return {}; }
  __device__ static unsigned index() { return threadIdx.x / N; }
};
template <>
struct Split<gin::CoopLanes> {  // even and odd lanes of each warp
  static constexpr unsigned count = kThreads / 32 * 2;
  __device__ static gin::CoopLanes coop() {
    return {threadIdx.x % 2 == 0 ? 0x55555555u : 0xaaaaaaaau};
  }
  __device__ static unsigned index() { return threadIdx.x / 32 * 2 + threadIdx.x % 2; }
};
template <>
struct Split<gin::CoopWarpSpan> {  // each warp a span of its own
  static constexpr unsigned count = kThreads / 32;
  __device__ static gin::CoopWarpSpan coop() {
    return gin::CoopWarpSpan(static_cast<int>(index()), 1, static_cast<int>(index()));
  }
  __device__ static unsigned index() { return threadIdx.x / 32; }
};
template <>
struct Split<gin::CoopCta> {
  static constexpr unsigned count = 1;
  __device__ static gin::CoopCta coop() { return {}; }
  __device__ static unsigned index() { return 0; }
};

/// A coop as a program might bring its own.
struct UserCoop {
  __device__ int thread_rank() const { return static_cast<int>(threadIdx.x); }
  __device__ int size() const { return static_cast<int>(blockDim.x); }
  __device__ void sync() const { __syncthreads(); }
};
template <>
struct Split<UserCoop> {
  static constexpr unsigned count = 1;
  __device__ static UserCoop coop() { return {}; }
  __device__ static unsigned index() { return 0; }
};

struct Ring {
  ginDevComm comm;
  ginWindow_t source;
  ginWindow_t dest;
  ginWindow_t signals;  // words for VA signals
  int context;
};

__device__ inline ginTeam_t world_of(Ring const& ring) {
  return ginTeamWorld(ring.comm);
}
__device__ inline int next_of(Ring const& ring) {
  return (ring.comm.rank + 1) % ring.comm.nRanks;
}

/// Reads and waits for either kind of signal through the action that raises it.
template <class Action>
__device__ auto read_of(gin::Context const& gin, Action const& a)
    -> decltype(a.signal, uint64_t()) {
  return gin.readSignal(a.signal);
}
template <class Action>
__device__ auto read_of(gin::Context const& gin, Action const& a)
    -> decltype(a.signalWindow, uint64_t()) {
  return gin.readSignal(a.signalWindow, a.signalOffset);
}
template <class Coop, class Action>
__device__ auto wait_of(gin::Context const& gin, Coop coop, Action const& a, uint64_t least)
    -> decltype(a.signal, void()) {
  gin.waitSignal(coop, a.signal, least);
}
template <class Coop, class Action>
__device__ auto wait_of(gin::Context const& gin, Coop coop, Action const& a, uint64_t least)
    -> decltype(a.signalWindow, void()) {
  gin.waitSignal(coop, a.signalWindow, a.signalOffset, least);
}

__device__ inline void copy_out(void* to, const void* from, size_t bytes) {
  for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) {
    static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
  }
}

/// Every coop puts its slice of `slice` bytes, from `offset` on, and the receiving block copies
/// what it got once its signal has grown by `grows` for each slice.
template <class Coop, class Action>
__global__ void put_slices(Ring ring, size_t offset, size_t slice, Action action, uint64_t grows,
                           unsigned char* result) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, ring.context);
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);
  const uint64_t before = read_of(gin, action);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  const size_t place = offset + Split<Coop>::index() * slice;
  gin.put(world_of(ring), next_of(ring), ring.dest, place, ring.source, place, slice, action,
          gin::WeakCounterInc{0}, Split<Coop>::coop());
  wait_of(gin, block, action, before + grows * Split<Coop>::count);
  copy_out(result, static_cast<char*>(ginGetLocalPointer(ring.dest, offset)),
           slice * Split<Coop>::count);
  gin.flush(block);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
}

/// Puts without an action, then one strong signal of the whole block.
template <class Action>
__global__ void put_then_signal(Ring ring, size_t bytes, Action action, uint64_t grows,
                                unsigned char* result) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, ring.context);
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);
  const uint64_t before = read_of(gin, action);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) {
    gin.put(world_of(ring), next_of(ring), ring.dest, i, ring.source, i, 1);
  }
  gin.signal(world_of(ring), next_of(ring), action, block);
  wait_of(gin, block, action, before + grows);
  copy_out(result, ginGetLocalPointer(ring.dest, 0), bytes);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
}

/// One value of type T at each of the block's threads' places, `stride` bytes apart.
template <class T>
__global__ void put_values(Ring ring, size_t offset, size_t stride, ginSignal_t signal) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, ring.context);
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);
  const uint64_t before = gin.readSignal(signal);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  const T value = static_cast<T>(ring.comm.rank * 100 + static_cast<int>(threadIdx.x));
  gin.putValue(world_of(ring), next_of(ring), ring.dest, offset + threadIdx.x * stride, value,
               gin::WeakSignalInc{signal});
  gin.waitSignal(block, signal, before + blockDim.x);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
}

/// Each coop gets its slice from the next rank.
template <class Coop>
__global__ void get_slices(Ring ring, size_t offset, size_t slice, bool by_request) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, ring.context);
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  const size_t place = offset + Split<Coop>::index() * slice;
  gin.get(world_of(ring), next_of(ring), ring.source, place, ring.dest, place, slice,
          Split<Coop>::coop());
  if (by_request) {
    ginRequest_t request;
    gin.flushAsync(world_of(ring), static_cast<uint32_t>(next_of(ring)), &request);
    gin.wait(request);
  } else {
    gin.flush(Split<Coop>::coop());
  }
  barrier.sync(block, gin::memory_order_acq_rel);
}

/// Counters: the source may be overwritten as soon as its counter has moved.
__global__ void reuse_source(Ring ring, size_t bytes, int rounds, uint64_t* seen) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, ring.context);
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);
  gin.resetCounter(1);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  auto* source = static_cast<unsigned char*>(ginGetLocalPointer(ring.source, 0));
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) {
      source[i] = static_cast<unsigned char>(round);
    }
    gin.put(world_of(ring), next_of(ring), ring.dest, static_cast<size_t>(round) * bytes,
            ring.source, 0, bytes, gin::None{}, gin::CounterInc{1}, block);
    gin.waitCounter(block, 1, static_cast<uint64_t>(round + 1));
  }
  if (threadIdx.x == 0) *seen = gin.readCounter(1);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::Put);
}

/// out[0..5]: before and delta of a followed shadow, the shadow after it, the signal, a masked
/// read, the shadow after reset.
__global__ void shadows(Ring ring, ginSignal_t signal, uint64_t* out) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, ring.context);
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);
  gin.resetSignal(signal);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  gin.signal(world_of(ring), next_of(ring), gin::StrongSignalAdd{signal, 300}, block);
  if (threadIdx.x == 0) gin.increaseSignalShadow(signal, 300);
  block.sync();
  gin.waitSignalMeetShadow(block, signal);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  gin.signal(world_of(ring), next_of(ring), gin::WeakSignalAdd{signal, 7}, block);
  uint64_t before = 0;
  uint64_t delta = 0;
  gin.waitSignalFollowShadow(block, signal, uint64_t{7}, &before, &delta);
  if (threadIdx.x == blockDim.x - 1) {  // every thread has the result
    out[0] = before;
    out[1] = delta;
    out[2] = *gin.getSignalShadowPtr(signal);
    out[3] = gin.readSignal(signal);
    out[4] = gin.readSignal(signal, 8);
  }
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  if (threadIdx.x == 0) {
    gin.resetSignal(signal);
    out[5] = *gin.getSignalShadowPtr(signal) + gin.readSignal(signal);
  }
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
}

/// Waits that only the low 8 bits decide, each for less than half their range: 240 + 20 rolls over
/// to 4.
__global__ void rolling(Ring ring, ginSignal_t signal, uint64_t* out) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, ring.context);
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);
  if (threadIdx.x == 0) gin.resetSignal(signal);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  uint64_t sum = 0;
  for (const uint64_t step : {120u, 120u, 20u}) {
    sum += step;
    gin.signal(world_of(ring), next_of(ring), gin::SignalAdd{signal, step}, block);
    gin.waitSignal(block, signal, sum, 8);
    barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  }
  if (threadIdx.x == 0) *out = gin.readSignal(signal, 8);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
}

/// Rounds of put without action, barrier with `fence`, read by the receiver, barrier.
template <class Coop>
__global__ void barrier_rounds(Ring ring, ginTeam_t team, ginBarrierHandle_t handle, int tag,
                               gin::FenceLevel fence, int rounds, int* wrong) {
  const Coop coop = Split<Coop>::coop();
  const gin::Context gin(ring.comm, ring.context);
  const int next = (team.rank + 1) % team.nRanks;
  const int previous = (team.rank + team.nRanks - 1) % team.nRanks;
  auto* in = static_cast<int*>(ginGetLocalPointer(ring.dest, 0));
  auto* out = static_cast<int*>(ginGetLocalPointer(ring.source, 0));
  const bool gets = fence == gin::FenceLevel::Get;
  const size_t place = (blockIdx.x * Split<Coop>::count + Split<Coop>::index()) * sizeof(int);
  const uint32_t index = blockIdx.x * Split<Coop>::count + Split<Coop>::index();
  auto meet = [&](auto& session, int round) {
    if (coop.thread_rank() == 0) out[index] = 1000 * round + ring.comm.rank;
    if (gets) {
      session.sync(coop, gin::memory_order_acq_rel, gin::FenceLevel::None);
      gin.get(team, previous, ring.source, place, ring.dest, place, sizeof(int), coop);
    } else {
      gin.put(team, next, ring.dest, place, ring.source, place, sizeof(int), gin::None{},
              gin::None{}, coop);
    }
    session.sync(coop, gin::memory_order_relaxed, fence);
    const int expected = 1000 * round + ginTeamRankToWorld(ring.comm, team, previous);
    if (in[index] != expected) *wrong += 1;
    session.sync(coop, gin::memory_order_acq_rel, gin::FenceLevel::None);
  };
  if (tag == 0) {
    gin::BarrierSession<Coop> session(coop, gin, team, handle, index);
    for (int round = 0; round < rounds; ++round) meet(session, round);
  } else if (tag == 1) {
    gin::BarrierSession<Coop> session(coop, gin, ginTeamTagWorld{}, index);
    for (int round = 0; round < rounds; ++round) meet(session, round);
  } else {
    gin::BarrierSession<Coop> session(coop, gin::AllContexts(ring.comm), ginTeamTagRail{}, index);
    for (int round = 0; round < rounds; ++round) meet(session, round);
  }
}

/// All ranks but 0 come to a barrier that rank 0 stays away from; all threads get the same answer.
__global__ void lonely_barrier(Ring ring, uint64_t timeout, int* results) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, ring.context);
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);
  if (ring.comm.rank == 0) return;
  results[threadIdx.x] =
      barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None, timeout);
}

/// Each context has its own copy of every signal.
__global__ void contexts(Ring ring, ginSignal_t signal, uint64_t* values) {
  const gin::CoopCta block;
  const int count = static_cast<int>(ring.comm.ginContextCount);
  for (int c = 0; c < count; ++c) {
    const gin::Context gin(ring.comm, c);
    for (int i = 0; i <= c; ++i) {
      gin.signal(world_of(ring), next_of(ring), gin::StrongSignalInc{signal}, block);
    }
    gin.waitSignal(block, signal, static_cast<uint64_t>(c + 1));
    gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);
    barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
    if (threadIdx.x == 0) values[c] = gin.readSignal(signal);
  }
}

/// Puts to every load/store-accessible rank by pointer and through the window's typed places.
__global__ void lsa_stores(Ring ring, int* wrong) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, ring.context);
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, 0);
  const ginTeam_t lsa = ginTeamLsa(ring.comm);
  if (threadIdx.x == 0) {
    for (int peer = 0; peer < lsa.nRanks; ++peer) {
      const size_t place = static_cast<size_t>(lsa.rank) * sizeof(int);
      *static_cast<int*>(ginGetLsaPointer(ring.dest, place, peer)) = ring.comm.rank;
      if (ginGetPeerPointer(ring.dest, place, lsa, peer) !=
          ginGetLsaPointer(ring.dest, place, peer)) {
        *wrong += 1;
      }
    }
    for (int world = 0; world < ring.comm.nRanks; ++world) {
      const bool near = world / ring.comm.lsaSize == ring.comm.rank / ring.comm.lsaSize;
      if ((ginGetPeerPointer(ring.dest, 0, world) != nullptr) != near) *wrong += 1;
    }
  }
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  if (threadIdx.x == 0) {
    gin::SymPtr<int> own(ring.dest, 0);
    for (int peer = 0; peer < lsa.nRanks; ++peer) {
      if ((own + peer).localPtr()[0] != ginTeamRankToWorld(ring.comm, lsa, peer)) *wrong += 1;
      if ((own + peer) - own != peer) *wrong += 1;
    }
  }
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
}

/// Every thread of every rank changes words of rank 0's destination window; `old` gets what each
/// thread of this rank saw when it added to the first word.
template <class T>
__global__ void change_words(Ring ring, T* old, T* swapped) {
  const gin::Context gin(ring.comm, ring.context);
  const ginTeam_t world = world_of(ring);
  const ginWindow_t words = ring.dest;
  const T bit = static_cast<T>(T(1) << (threadIdx.x % (8 * sizeof(T) - 1)));
  old[threadIdx.x] = gin.atomicFetch(gin::AtomicOp::Add, world, 0, words, 0, T(1));
  gin.atomic(gin::AtomicOp::Add, world, 0, words, sizeof(T), T(3));
  gin.atomic(gin::AtomicOp::Or, world, 0, words, 2 * sizeof(T), bit);
  gin.atomic(gin::AtomicOp::And, world, 0, words, 3 * sizeof(T), static_cast<T>(~bit));
  gin.atomic(gin::AtomicOp::Xor, world, 0, words, 4 * sizeof(T), bit);
  // Adds one by compare-and-swap.
  T seen = gin.atomicFetch(gin::AtomicOp::Fetch, world, 0, words, 5 * sizeof(T), T(0));
  for (;;) {
    const T expected = seen;
    seen = gin.atomicFetch(gin::AtomicOp::CompareSwap, world, 0, words, 5 * sizeof(T),
                           static_cast<T>(expected + 1), expected);
    if (seen == expected) break;
  }
  // A chain: each thread leaves its own mark and gets that of another, or 0.
  const T mark = static_cast<T>(ring.comm.rank * static_cast<int>(blockDim.x) +
                                static_cast<int>(threadIdx.x) + 1);
  swapped[threadIdx.x] = gin.atomicFetch(gin::AtomicOp::Swap, world, 0, words, 6 * sizeof(T), mark);
  gin.atomic(gin::AtomicOp::Set, world, 0, words, 7 * sizeof(T), T(77));
  gin.flush(gin::CoopThread{});
  gin::BarrierSession<gin::CoopCta> barrier(gin::CoopCta{}, gin, ginTeamTagWorld{}, 0);
  barrier.sync(gin::CoopCta{}, gin::memory_order_acq_rel);
}

}  // namespace gin_test

#endif
