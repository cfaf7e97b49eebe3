// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_BLOCK_SYNC_H
#define GIMLET_DEVICE_CPU_BLOCK_SYNC_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gimlet::device {

inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kMaxBlockThreads = 1024;
inline constexpr unsigned kMaxWarps = kMaxBlockThreads / kWarpSize;
inline constexpr unsigned kNamedBarriers = 16;

/// Who of a block may run, and who waits at which barrier. Pure bookkeeping that both modes of the
/// executor share: it switches nothing and locks nothing.
///
/// Invariant: a live thread is either runnable or parked at exactly one barrier, so a block with
/// live threads and none runnable can never go on.
class BlockSync {
 public:
  enum class Exchange : std::uint8_t { kNone, kShuffle, kBallot };

  void reset(unsigned threads);

  unsigned live() const { return live_count_; }
  unsigned runnable() const { return runnable_count_; }
  bool is_stuck() const { return runnable_count_ == 0 && live_count_ != 0; }
  bool is_runnable(unsigned thread) const {
    return (runnable_[thread / kWarpSize] >> (thread % kWarpSize) & 1) != 0;
  }
  /// The next runnable thread behind `thread` in ring order, which is `thread` itself if it is the
  /// only one. At least one must be runnable.
  unsigned next_after(unsigned thread) const {
    const unsigned warp = thread / kWarpSize;
    // Two shifts, because one by 32 is undefined.
    const std::uint32_t rest = runnable_[warp] & (~0u << (thread % kWarpSize) << 1);
    if (rest != 0) return warp * kWarpSize + lowest(rest);
    const std::uint32_t behind = warps_runnable_ & (~0u << warp << 1);
    const unsigned found = lowest(behind != 0 ? behind : warps_runnable_);
    return found * kWarpSize + lowest(runnable_[found]);
  }

  // Arrivals. True: the barrier is complete, everybody who was parked at it is runnable again and
  // the caller just goes on. False: the caller is parked until it is runnable.
  bool arrive_block(unsigned thread, bool predicate) {
    if (predicate) ++predicates_;
    if (block_arrived_ + 1 == live_count_) {
      complete_block();
      return true;
    }
    ++block_arrived_;
    park(thread);
    return false;
  }
  bool arrive_named(unsigned thread, unsigned id, unsigned threads);
  bool arrive_warp(unsigned thread, std::uint32_t mask, Exchange kind = Exchange::kNone,
                   std::uint64_t value = 0, unsigned source = 0);

  /// How many threads passed a true predicate to the last complete block barrier.
  int counted() const { return counted_; }
  /// Block barriers that are complete so far.
  unsigned block_barriers() const { return block_barriers_; }
  /// What the last exchange gave to `thread`.
  std::uint64_t exchanged(unsigned thread) const { return lanes_[thread].result; }
  /// Threads that barrier `id` waits for, 0 while nobody waits there.
  unsigned named_threads(unsigned id) const { return named_[id].threads; }

  /// The thread returned from the kernel: nobody waits for it any more.
  void leave(unsigned thread);

  /// Who waits where, for a message: "31 threads at __syncthreads, 1 at __syncwarp".
  std::string describe() const;

 private:
  struct Lane {
    std::uint64_t value;
    std::uint64_t result;
    std::uint32_t mask;
    std::uint8_t source;
    Exchange kind;
  };
  struct Named {
    unsigned threads = 0;
    std::array<std::uint32_t, kMaxWarps> arrived{};
  };

  static unsigned lowest(std::uint32_t bits) { return static_cast<unsigned>(__builtin_ctz(bits)); }
  void park(unsigned thread) {
    const unsigned warp = thread / kWarpSize;
    runnable_[warp] &= ~(1u << (thread % kWarpSize));
    if (runnable_[warp] == 0) warps_runnable_ &= ~(1u << warp);
    --runnable_count_;
  }
  void release(unsigned warp, std::uint32_t lanes);
  void complete_block();
  bool complete_named(unsigned id);
  void complete_warp(unsigned warp, std::uint32_t members, Exchange kind);
  void recheck_warp(unsigned warp);

  unsigned warps_ = 0;
  unsigned live_count_ = 0;
  unsigned runnable_count_ = 0;
  unsigned block_arrived_ = 0;
  unsigned block_barriers_ = 0;
  int predicates_ = 0;
  int counted_ = 0;
  std::uint32_t warps_runnable_ = 0;
  std::uint32_t named_in_use_ = 0;
  std::array<std::uint32_t, kMaxWarps> live_{};
  std::array<std::uint32_t, kMaxWarps> runnable_{};
  std::array<std::uint32_t, kMaxWarps> warp_arrived_{};
  std::vector<Lane> lanes_;
  std::array<Named, kNamedBarriers> named_{};
};

}  // namespace gimlet::device

#endif
