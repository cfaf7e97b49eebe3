// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_GUARDED_MEMORY_H
#define GIMLET_DEVICE_GUARDED_MEMORY_H

#include <cstddef>
#include <memory>

#include "device/memory_kind.h"

namespace gimlet::device {

/// Addresses that stand for a piece of host memory and that nobody can load from or store to: only
/// the copies of guarded_memory() know what is behind them. It shows, where there is no GPU, who
/// touches memory that is none of its business: that thread crashes.
class GuardedRange {
 public:
  /// `real` stays in place as long as the range does.
  static Status make(std::byte* real, std::size_t bytes, std::unique_ptr<GuardedRange>& out);
  ~GuardedRange();
  GuardedRange(const GuardedRange&) = delete;
  GuardedRange& operator=(const GuardedRange&) = delete;

  /// As far away from a page's start as the real one.
  std::byte* base() const { return base_; }

 private:
  GuardedRange() = default;

  void* pages_ = nullptr;
  std::size_t pages_bytes_ = 0;
  std::byte* base_ = nullptr;
};

/// The kind of such addresses. Nothing is allocated in it.
const MemoryKind& guarded_memory();

}  // namespace gimlet::device

#endif
