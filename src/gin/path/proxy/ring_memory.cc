// SPDX-License-Identifier: BSD-3-Clause
#include "gin/path/proxy/ring_memory.h"

#include <algorithm>
#include <bit>

namespace gimlet::gin {
namespace {

constexpr std::size_t kLine = 128;
constexpr std::uint32_t kMostDepth = 1u << 20;

/// Hands out pieces one behind the other: sizes first, addresses once there is memory.
class Pieces {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t start = end_;
    end_ += (bytes + kLine - 1) / kLine * kLine;
    return start;
  }
  std::size_t bytes() const { return end_; }

 private:
  std::size_t end_ = 0;
};

std::uint64_t* words(std::span<std::byte> piece) {
  return piece.empty() ? nullptr : reinterpret_cast<std::uint64_t*>(piece.data());
}

}  // namespace

Status RingMemory::make(const ResourceLayout& layout, int ranks, std::uint32_t queue_depth,
                        std::uint32_t contexts_each, std::unique_ptr<RingMemory>& out) {
  if (queue_depth > kMostDepth) {
    return fail(Code::kInvalidArgument, "ginQueueDepth is {}; allowed are 0 to {}", queue_depth,
                kMostDepth);
  }
  const std::uint64_t depth = queue_depth == 0
                                  ? GIN_RING_DEPTH
                                  : std::bit_ceil(std::max(queue_depth, GIN_RING_LEAST_DEPTH));
  const std::size_t contexts = layout.contexts;
  const std::size_t oldest_bytes =
      (static_cast<std::size_t>(ranks) * sizeof(std::uint64_t) + kLine - 1) / kLine * kLine;
  Pieces pieces;
  const std::size_t rings_at = pieces.add(contexts * sizeof(ginRing));
  const std::size_t slots_at = pieces.add(contexts * depth * sizeof(ginRingSlot));
  const std::size_t progress_at = pieces.add(contexts * sizeof(ginRingProgress));
  const std::size_t oldest_at = pieces.add(contexts * oldest_bytes);
  const std::size_t results_at = pieces.add(contexts * GIN_RING_RESULTS * sizeof(ginRingResult));
  const std::size_t parked_at = pieces.add(((contexts - 1) / contexts_each + 1) * kLine);
  const std::size_t signal_bytes = contexts * layout.signals_pitch;
  const std::size_t counter_bytes = contexts * layout.counters_pitch;
  const std::size_t signals_at = pieces.add(signal_bytes);
  const std::size_t signal_bases_at = pieces.add(signal_bytes);
  const std::size_t counters_at = pieces.add(counter_bytes);
  const std::size_t counter_bases_at = pieces.add(counter_bytes);

  std::unique_ptr<RingMemory> made(new RingMemory);
  GIMLET_TRY(device::host_memory().allocate(pieces.bytes(), "gimlet-gin-rings", made->memory_));
  std::byte* const base = made->memory_->base();
  made->rings_ = {reinterpret_cast<ginRing*>(base + rings_at), contexts};
  made->signals_ = {base + signals_at, signal_bytes};
  made->signal_bases_ = {base + signal_bases_at, signal_bytes};
  made->counters_ = {base + counters_at, counter_bytes};
  made->counter_bases_ = {base + counter_bases_at, counter_bytes};
  for (std::size_t context = 0; context < contexts; ++context) {
    ginRing& ring = made->rings_[context];
    ring.slots = reinterpret_cast<ginRingSlot*>(base + slots_at) + context * depth;
    ring.depth = depth;
    ring.progress = reinterpret_cast<ginRingProgress*>(base + progress_at) + context;
    ring.oldest = reinterpret_cast<std::uint64_t*>(base + oldest_at + context * oldest_bytes);
    ring.results = reinterpret_cast<ginRingResult*>(base + results_at) + context * GIN_RING_RESULTS;
    ring.parked =
        reinterpret_cast<std::uint32_t*>(base + parked_at + context / contexts_each * kLine);
    std::fill_n(ring.oldest, ranks, GIN_RING_NONE);
  }
  out = std::move(made);
  return {};
}

Status RingMemory::add_bounces() {
  GIMLET_TRY(device::host_memory().allocate(rings_.size() * sizeof(ginRingBounces),
                                            "gimlet-gin-bounces", bounces_));
  auto* next = reinterpret_cast<ginRingBounces*>(bounces_->base());
  for (ginRing& ring : rings_) ring.bounces = next++;
  return {};
}

void RingMemory::fill(ginDevComm& comm) const {
  comm.rings = rings_.data();
  comm.netSignals = words(signals_);
  comm.netSignalBases = words(signal_bases_);
  comm.netCounters = words(counters_);
  comm.netCounterBases = words(counter_bases_);
}

}  // namespace gimlet::gin
