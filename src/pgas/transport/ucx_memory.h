// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_UCX_MEMORY_H
#define GIMLET_PGAS_TRANSPORT_UCX_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pgas/transport/transport.h"

namespace gimlet::pgas::ucx {

/// The symmetric memory of this PE as a served request sees it: places are checked, words are
/// updated by this CPU.
class ServedMemory {
 public:
  explicit ServedMemory(std::span<const LocalSegment> segments)
      : segments_(segments.begin(), segments.end()) {}

  /// Null when any byte of the range lies outside the segment.
  std::byte* locate(std::uint16_t segment, std::uint64_t offset, std::uint64_t bytes) const {
    if (segment >= segments_.size()) return nullptr;
    const LocalSegment& found = segments_[segment];
    if (offset > found.size || bytes > found.size - offset) return nullptr;
    return found.base + offset;
  }
  /// Null as well when the word is not 4 or 8 bytes wide or not aligned to its width.
  std::byte* locate_word(std::uint16_t segment, std::uint64_t offset, unsigned width) const {
    if (width != 4 && width != 8) return nullptr;
    std::byte* word = locate(segment, offset, width);
    return reinterpret_cast<std::uintptr_t>(word) % width == 0 ? word : nullptr;
  }

  std::size_t count() const { return segments_.size(); }
  std::uint64_t size_of(std::uint16_t segment) const {
    return segment < segments_.size() ? segments_[segment].size : 0;
  }
  const std::vector<LocalSegment>& segments() const { return segments_; }

 private:
  std::vector<LocalSegment> segments_;
};

/// Copies. A naturally aligned destination of 1, 2, 4 or 8 bytes is written by a single store,
/// because programs poll such words.
void store_payload(std::byte* dest, const void* source, std::size_t bytes);
/// Copies. A naturally aligned source of 1, 2, 4 or 8 bytes is read by a single load.
void load_payload(void* dest, const std::byte* source, std::size_t bytes);
/// Updates the word and returns what it held. Lock-prefixed, so it excludes every other CPU's
/// atomics on the word.
std::uint64_t update_word(std::byte* word, unsigned width, AmoOp op, std::uint64_t operand,
                          std::uint64_t compare);

}  // namespace gimlet::pgas::ucx

#endif
