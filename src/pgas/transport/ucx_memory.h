// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_UCX_MEMORY_H
#define GIMLET_PGAS_TRANSPORT_UCX_MEMORY_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "pgas/transport/carry_out.h"
#include "pgas/transport/transport.h"

namespace gimlet::pgas::ucx {

/// The symmetric memory of this PE as a served request sees it: places are checked, words are
/// updated by this CPU.
class ServedMemory final : public TargetMemory {
 public:
  explicit ServedMemory(std::span<const LocalSegment> segments)
      : own_(segments.begin(), segments.end()),
        segments_(static_cast<LocalSegment*>(std::calloc(kMost, sizeof(LocalSegment))),
                  &std::free) {
    if (segments_ == nullptr) return;
    for (const LocalSegment& segment : own_) segments_[count_++] = segment;
    next_ = static_cast<std::size_t>(count_);
  }

  /// Null when any byte of the range lies outside the segment.
  std::byte* locate(std::uint16_t segment, std::uint64_t offset,
                    std::uint64_t bytes) const override {
    if (segment >= count_.load(std::memory_order_acquire)) return nullptr;
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

  std::uint64_t size_of(std::uint16_t segment) const override {
    if (is_staged(segment)) return staged_.size_of(segment);
    return segment < count_.load(std::memory_order_acquire) ? segments_[segment].size : 0;
  }
  /// Whether the segment may go while others go on: what is under way must not refer to it.
  bool is_removable(std::uint16_t segment) const { return segment >= own_.size(); }
  /// Those that every PE has, from the start.
  const std::vector<LocalSegment>& segments() const { return own_; }

  /// Further ones, of 0 bytes too, while nobody serves a request. False: all numbers are taken.
  bool add(const LocalSegment& segment, std::uint16_t& number);
  void remove(std::uint16_t number) {
    if (is_staged(number)) return staged_.remove(number);
    segments_[number] = {};
  }
  StagedSegments* staged() const override { return &staged_; }

 private:
  static constexpr std::size_t kMost = kFirstStaged;

  std::vector<LocalSegment> own_;
  // In place for ever: this PE looks places up without a lock. Without a base: none.
  std::unique_ptr<LocalSegment[], decltype(&std::free)> segments_;
  std::atomic<std::size_t> count_{0};
  std::size_t next_ = 0;
  mutable StagedSegments staged_;
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
