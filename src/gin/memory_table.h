// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_MEMORY_TABLE_H
#define GIMLET_GIN_MEMORY_TABLE_H

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "device/memory_kind.h"
#include "device/status.h"

namespace gimlet::gin {

/// Where a piece of memory lies: in an allocation that keeps living while this does.
struct MemoryPiece {
  std::shared_ptr<const device::Memory> memory;
  std::size_t offset = 0;
};

/// The ginMemAlloc() allocations of this process, by address: allocation is local and knows no
/// communicator, registration has only a pointer. Safe from any thread.
class MemoryTable {
 public:
  static MemoryTable& of_process();

  Status allocate(std::size_t bytes, void*& address);
  /// Forgets the allocation that starts at `address`; pieces of it keep it alive.
  Status release(void* address);
  /// The allocation, or the symmetric heap, that holds all of [address, address + bytes).
  Status find(const void* address, std::size_t bytes, MemoryPiece& piece) const;

 private:
  mutable std::mutex mutex_;
  std::map<const std::byte*, std::shared_ptr<const device::Memory>> by_start_;
};

}  // namespace gimlet::gin

#endif
