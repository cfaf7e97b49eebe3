// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_STACK_POOL_H
#define GIMLET_DEVICE_CPU_STACK_POOL_H

#include <cstddef>
#include <mutex>
#include <vector>

#include "device/cpu/sanitizer.h"
#include "device/status.h"

namespace gimlet::device {

/// Stacks of fibers. Address space comes in large mappings that are never returned, so whatever
/// lies on a stack stays readable; memory is touched on use and kept for the next launch, up to a
/// bound.
class StackPool {
 public:
  /// An odd number of pages: the pages at the tops, one a fiber, then spread over all sets of the
  /// TLB (measured with 4096 fibers: 18 instead of 60 to 80 ns a switch).
  static constexpr std::size_t kStackBytes = (kSanitized ? 256 + 4 : 64 + 4) * 1024;

  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  /// Appends `count` stacks (their lowest addresses) to `stacks`.
  Status take(std::size_t count, std::vector<std::byte*>& stacks);
  /// Takes all of `stacks` back and empties it. Nothing may run on them.
  void give_back(std::vector<std::byte*>& stacks);

  /// First address above the usable part. Tops of neighbours lie 64 bytes apart modulo a page:
  /// equally aligned ones would share one set of the cache, which doubles the cost of a switch.
  static std::byte* top(std::byte* stack);

 private:
  Status map_more();

  std::mutex mutex_;
  std::vector<std::byte*> free_;
};

}  // namespace gimlet::device

#endif
