// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_STACK_POOL_H
#define GIMLET_DEVICE_CPU_STACK_POOL_H

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "device/status.h"

namespace gimlet::device {

/// Stacks of fibers. Address space comes in large mappings that are never returned, so whatever
/// lies on a stack stays readable; memory is touched on use and kept for the next launch, up to a
/// bound. Below each stack lie guard pages, which nothing can touch.
class StackPool {
 public:
  /// The lowest part of each stack. A frame that is larger may jump over it.
  static constexpr std::size_t kGuardBytes = 4 * 4096;

  /// How the guard pages are made.
  enum class Guard : std::uint8_t {
    kLight,    // Linux 6.13: without mappings of their own
    kMapping,  // two mappings a stack: for as many as half the system's limit of mappings allows
    kNone,
  };

  /// Stacks that hold `usable_bytes`, in whole pages. A guard that the system does not have is
  /// replaced by the next one.
  explicit StackPool(std::uint64_t usable_bytes, Guard guard = Guard::kLight);
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  /// Appends `count` stacks (their lowest addresses) to `stacks`.
  Status take(std::size_t count, std::vector<std::byte*>& stacks);
  /// Takes all of `stacks` back and empties it. Nothing may run on them.
  void give_back(std::vector<std::byte*>& stacks);

  /// First address above the usable part. Tops of neighbours lie 64 bytes apart modulo a page:
  /// equally aligned ones would share one set of the cache, which doubles the cost of a switch.
  std::byte* top(std::byte* stack) const;
  /// Their first usable address.
  static std::byte* low(std::byte* stack) { return stack + kGuardBytes; }

 private:
  Status map_more();
  void protect(std::byte* stack);

  const std::size_t stack_bytes_;  // with the guard
  std::mutex mutex_;
  // Guarded by mutex_.
  Guard guard_;
  std::size_t mappings_left_ = 0;
  std::vector<std::byte*> warm_;  // free, and perhaps with memory
  std::vector<std::byte*> cold_;  // free, without
};

}  // namespace gimlet::device

#endif
