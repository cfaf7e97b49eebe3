// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_BELL_H
#define GIMLET_DEVICE_BELL_H

#include <atomic>
#include <cstdint>

namespace gimlet::device {

/// What one thread sleeps on between pieces of work, and others ring:
///
///   seen = bell.rings();  if (no work) bell.sleep(seen, limit);
///
/// A ring between the two lines is not lost: the thread doesn't sleep.
class Bell {
 public:
  /// Acquire: what the ringer did before is seen.
  std::uint32_t rings() const { return rings_.load(std::memory_order_acquire); }
  /// From any thread.
  void ring();
  /// Until the bell has rung since `seen`, or `limit_ns` are over (0: no limit). May end early.
  void sleep(std::uint32_t seen, std::uint64_t limit_ns);

 private:
  std::atomic<std::uint32_t> rings_{0};
};

/// Orders the caller's earlier stores before its later loads, and makes every other thread of the
/// process do the same somewhere during the call: those need no barrier of their own. False when
/// the system has no such call.
bool barrier_of_all_threads();

}  // namespace gimlet::device

#endif
