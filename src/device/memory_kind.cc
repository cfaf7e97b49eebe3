// SPDX-License-Identifier: BSD-3-Clause
#include "device/memory_kind.h"

#include "device/guarded_memory.h"

namespace gimlet::device {
namespace {

/// Copies that are over when start() returns.
class CopiesAtOnce final : public CopyQueue {
 public:
  explicit CopiesAtOnce(const MemoryKind& kind) : kind_(kind) {}
  std::uint64_t start(void* dest, const void* source, std::size_t bytes) override {
    kind_.copy(dest, source, bytes);
    return ++count_;
  }
  std::uint64_t finished() override { return count_; }

 private:
  const MemoryKind& kind_;
  std::uint64_t count_ = 0;
};

}  // namespace

std::unique_ptr<CopyQueue> MemoryKind::make_copy_queue() const {
  return std::make_unique<CopiesAtOnce>(*this);
}

std::span<const MemoryKind* const> staged_kinds() {
  static const MemoryKind* const kinds[] = {&guarded_memory()};
  return kinds;
}

}  // namespace gimlet::device
