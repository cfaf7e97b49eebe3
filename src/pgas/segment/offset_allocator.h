// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_SEGMENT_OFFSET_ALLOCATOR_H
#define GIMLET_PGAS_SEGMENT_OFFSET_ALLOCATOR_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace gimlet::pgas {

/// Hands out ranges of a space of `size` bytes that it never touches: the state lives here, so a
/// stray remote write can't destroy it, and it works for memory that the CPU can't reach.
///
/// Deterministic: the same calls give the same offsets on every PE. Best fit, lowest offset on
/// ties; no addresses, times or random numbers enter. Not thread-safe.
class OffsetAllocator {
 public:
  static constexpr std::uint64_t kGranule = 64;

  explicit OffsetAllocator(std::uint64_t size);

  /// Offset of `bytes` (at least 1), aligned to `alignment` (a power of two), or nothing when no
  /// block fits.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment);
  /// False when `offset` is no allocation.
  bool release(std::uint64_t offset);
  /// Bytes reserved at `offset` (rounded up to the granule), 0 when it is no allocation.
  std::uint64_t size_of(std::uint64_t offset) const;
  std::uint64_t largest_free() const;
  std::uint64_t used() const { return used_; }
  std::size_t allocations() const { return taken_.size(); }

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  // offset -> size

  void insert_free(std::uint64_t offset, std::uint64_t size);
  void erase_free(Ranges::iterator range);

  Ranges taken_;
  Ranges free_;                                                // never adjacent to each other
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // (size, offset) of free_
  std::uint64_t used_ = 0;
};

}  // namespace gimlet::pgas

#endif
