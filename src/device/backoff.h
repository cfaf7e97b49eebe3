// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_BACKOFF_H
#define GIMLET_DEVICE_BACKOFF_H

#include <cstdint>

namespace gimlet::device {

/// How one host wait loop is patient: `while (!done()) { progress(); backoff.step(); }`.
/// Called from a fiber of the CPU executor a step hands over to another fiber. Elsewhere it pauses
/// while every PE of the node can have a core, then yields the core, and sleeps 50 us at a time
/// after 20 ms of fruitless looks, so that a long wait costs next to nothing.
class Backoff {
 public:
  void step();
  void reset() { *this = Backoff(); }
  /// Nanoseconds since the first step that had to look at the clock; 0 while the wait is short.
  std::uint64_t waited_ns() const { return waited_ns_; }

 private:
  std::uint32_t looks_ = 0;
  std::uint64_t started_ns_ = 0;
  std::uint64_t waited_ns_ = 0;
};

/// More PEs on the node than cores: waits then yield at once instead of pausing.
void set_oversubscribed(bool on);

/// The executor installs this once: yields the calling fiber and returns true, or returns false
/// when the caller is no fiber. `first_look`: a new wait begins.
using FiberYield = bool (*)(bool first_look);
void set_fiber_yield(FiberYield hook);

}  // namespace gimlet::device

#endif
