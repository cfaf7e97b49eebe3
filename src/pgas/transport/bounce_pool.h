// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_BOUNCE_POOL_H
#define GIMLET_PGAS_TRANSPORT_BOUNCE_POOL_H

#include <cstddef>
#include <memory>
#include <vector>

#include "device/memory_kind.h"
#include "device/status.h"

namespace gimlet::pgas {

/// Pieces of host memory that transports and the copies of every kind may touch. Allocated once,
/// of one user at a time.
class BouncePool {
 public:
  static constexpr std::size_t kPieceBytes = 256 << 10;

  /// As many pieces as fit in `bytes`, one at least.
  static Status make(std::size_t bytes, const char* label, std::unique_ptr<BouncePool>& out) {
    const std::size_t pieces = bytes < kPieceBytes ? 1 : bytes / kPieceBytes;
    std::unique_ptr<BouncePool> made(new BouncePool);
    GIMLET_TRY(device::host_memory().allocate(pieces * kPieceBytes, label, made->memory_));
    for (std::size_t i = pieces; i-- != 0;)
      made->free_.push_back(made->memory_->base() + i * kPieceBytes);
    out = std::move(made);
    return {};
  }

  std::size_t count() const { return memory_->size() / kPieceBytes; }
  bool has_free() const { return !free_.empty(); }
  /// Null: none is free.
  std::byte* take() {
    if (free_.empty()) return nullptr;
    std::byte* const piece = free_.back();
    free_.pop_back();
    return piece;
  }
  void give_back(std::byte* piece) { free_.push_back(piece); }

 private:
  BouncePool() = default;

  std::unique_ptr<device::Memory> memory_;
  std::vector<std::byte*> free_;
};

}  // namespace gimlet::pgas

#endif
