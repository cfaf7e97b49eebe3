// SPDX-License-Identifier: BSD-3-Clause
#include "gin/memory_table.h"

#include "pgas/pe.h"

namespace gimlet::gin {
namespace {

bool holds(const device::Memory& memory, const std::byte* address, std::size_t bytes) {
  if (address < memory.base()) return false;
  const auto offset = static_cast<std::size_t>(address - memory.base());
  return offset <= memory.size() && bytes <= memory.size() - offset;
}

}  // namespace

MemoryTable& MemoryTable::of_process() {
  static MemoryTable table;
  return table;
}

Status MemoryTable::allocate(std::size_t bytes, void*& address) {
  std::unique_ptr<device::Memory> memory;
  GIMLET_TRY(device::host_memory().allocate(bytes, "gimlet-gin-memory", memory));
  address = memory->base();
  const std::scoped_lock lock(mutex_);
  by_start_[memory->base()] = std::move(memory);
  return {};
}

Status MemoryTable::release(void* address) {
  std::shared_ptr<const device::Memory> memory;  // unmapped after the lock is dropped
  const std::scoped_lock lock(mutex_);
  const auto found = by_start_.find(static_cast<const std::byte*>(address));
  if (found == by_start_.end()) {
    return fail(Code::kInvalidArgument, "{} is not an address that ginMemAlloc returned", address);
  }
  memory = std::move(found->second);
  by_start_.erase(found);
  return {};
}

Status MemoryTable::find(const void* address, std::size_t bytes, MemoryPiece& piece) const {
  const auto* start = static_cast<const std::byte*>(address);
  {
    const std::scoped_lock lock(mutex_);
    auto after = by_start_.upper_bound(start);
    if (after != by_start_.begin() && holds(*std::prev(after)->second, start, bytes)) {
      piece.memory = std::prev(after)->second;
      piece.offset = static_cast<std::size_t>(start - piece.memory->base());
      return {};
    }
  }
  const device::Memory* heap =
      pgas::Pe::self().is_initialized() ? pgas::Pe::self().heap() : nullptr;
  if (heap != nullptr && holds(*heap, start, bytes)) {
    piece.memory = std::shared_ptr<const device::Memory>(std::shared_ptr<void>(), heap);
    piece.offset = static_cast<std::size_t>(start - heap->base());
    return {};
  }
  return fail(
      Code::kInvalidArgument,
      "the {} bytes at {} are not in one allocation of ginMemAlloc, nor in the symmetric heap",
      bytes, address);
}

}  // namespace gimlet::gin
