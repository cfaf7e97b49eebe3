// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/segment/offset_allocator.h"

#include <algorithm>
#include <iterator>

namespace gimlet::pgas {
namespace {

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

OffsetAllocator::OffsetAllocator(std::uint64_t size) {
  if (size / kGranule != 0) insert_free(0, size / kGranule * kGranule);
}

std::optional<std::uint64_t> OffsetAllocator::allocate(std::uint64_t bytes,
                                                       std::uint64_t alignment) {
  if (bytes == 0 || bytes > largest_free()) return std::nullopt;
  const std::uint64_t size = round_up(bytes, kGranule);
  const std::uint64_t align = std::max(alignment, kGranule);
  for (auto candidate = by_size_.lower_bound({size, 0}); candidate != by_size_.end(); ++candidate) {
    const auto [free_size, free_offset] = *candidate;
    const std::uint64_t offset = round_up(free_offset, align);
    const std::uint64_t head = offset - free_offset;
    if (head > free_size || free_size - head < size) continue;
    erase_free(free_.find(free_offset));
    if (head != 0) insert_free(free_offset, head);
    if (const std::uint64_t tail = free_size - head - size; tail != 0)
      insert_free(offset + size, tail);
    taken_.emplace(offset, size);
    used_ += size;
    return offset;
  }
  return std::nullopt;
}

bool OffsetAllocator::release(std::uint64_t offset) {
  const auto block = taken_.find(offset);
  if (block == taken_.end()) return false;
  std::uint64_t start = block->first;
  std::uint64_t size = block->second;
  used_ -= size;
  taken_.erase(block);
  if (const auto next = free_.find(start + size); next != free_.end()) {
    size += next->second;
    erase_free(next);
  }
  if (auto previous = free_.lower_bound(start); previous != free_.begin()) {
    --previous;
    if (previous->first + previous->second == start) {
      start = previous->first;
      size += previous->second;
      erase_free(previous);
    }
  }
  insert_free(start, size);
  return true;
}

std::uint64_t OffsetAllocator::size_of(std::uint64_t offset) const {
  const auto block = taken_.find(offset);
  return block == taken_.end() ? 0 : block->second;
}

std::uint64_t OffsetAllocator::largest_free() const {
  return by_size_.empty() ? 0 : std::prev(by_size_.end())->first;
}

void OffsetAllocator::insert_free(std::uint64_t offset, std::uint64_t size) {
  free_.emplace(offset, size);
  by_size_.emplace(size, offset);
}

void OffsetAllocator::erase_free(Ranges::iterator range) {
  by_size_.erase({range->second, range->first});
  free_.erase(range);
}

}  // namespace gimlet::pgas
