// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_PROXY_RING_CONSUMER_H
#define GIMLET_GIN_PATH_PROXY_RING_CONSUMER_H

#include <atomic>
#include <cstdint>

#include "gin/impl/ring_layout.h"

namespace gimlet::gin {

/// The proxy's end of a ring; gin/impl/ring_layout.h has the rules. One thread uses it.
///
/// For tests only, and a test must notice:
///   GIN_MUTANT_CREDIT_EARLY  a slot is given back before it was read
///   GIN_MUTANT_DONE_EARLY    a request is called complete before it was carried out
class RingConsumer {
 public:
  /// Goes on where the ring stands.
  explicit RingConsumer(ginRing& ring)
      : slots_(ring.slots),
        depth_(ring.depth),
        progress_(*ring.progress),
        next_(ring.progress->consumed),
        phase_(::gin::impl::ring_phase(next_, depth_)) {}

  /// Number of the next request: how many were taken.
  std::uint64_t next() const { return next_; }

  bool is_ready() const { return has_phase(3); }

  /// False: the next slot is not written yet.
  bool take(::gin::impl::RingRequest& request) {
    std::uint64_t words[8];
    for (int quarter = 3; quarter >= 0; --quarter) {
      if (!has_phase(quarter)) return false;
      words[2 * quarter] = word(2 * quarter).load(std::memory_order_relaxed);
      words[2 * quarter + 1] = word(2 * quarter + 1).load(std::memory_order_relaxed);
    }
    request = ::gin::impl::decode_slot(words);
    ++next_;
    if ((next_ & (depth_ - 1)) == 0) phase_ = ::gin::impl::ring_phase(next_, depth_);
#ifdef GIN_MUTANT_DONE_EARLY
    publish_done(next_);
#endif
    return true;
  }

  /// Gives the slots that were taken back to the device. Release: the next writer's acquire of its
  /// credit comes after the reads of take().
  void publish_consumed() {
#ifdef GIN_MUTANT_CREDIT_EARLY
    std::atomic_ref(progress_.consumed).store(next_ + 1, std::memory_order_release);
#else
    std::atomic_ref(progress_.consumed).store(next_, std::memory_order_release);
#endif
  }
  /// Everything before `number` is complete. Release: what that brought is seen by whoever
  /// acquires.
  void publish_done(std::uint64_t number) {
    std::atomic_ref(progress_.done).store(number, std::memory_order_release);
  }

 private:
  std::atomic_ref<std::uint64_t> word(int index) const {
    return std::atomic_ref(slots_[next_ & (depth_ - 1)].words[index]);
  }
  // Acquire: taken from the device's release of the last word.
  bool has_phase(int quarter) const {
    return word(2 * quarter + 1).load(std::memory_order_acquire) >> ::gin::impl::kOffsetBits ==
           phase_;
  }

  ginRingSlot* slots_;
  std::uint64_t depth_;
  ginRingProgress& progress_;
  std::uint64_t next_;
  std::uint64_t phase_;  // of the next slot
};

}  // namespace gimlet::gin

#endif
