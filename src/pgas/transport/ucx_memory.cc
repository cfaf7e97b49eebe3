// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/ucx_memory.h"

#include <atomic>
#include <cstring>

namespace gimlet::pgas::ucx {
namespace {

bool aligned(const void* place, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(place) % bytes == 0;
}

// Release: whoever polls the word with an acquire load also sees payloads stored before.
template <class Word>
void store_word(std::byte* dest, const void* source) {
  Word value;
  std::memcpy(&value, source, sizeof value);
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(dest)).store(value, std::memory_order_release);
}

template <class Word>
void load_word(void* dest, const std::byte* source) {
  auto* word = reinterpret_cast<Word*>(const_cast<std::byte*>(source));
  const Word value = std::atomic_ref<Word>(*word).load(std::memory_order_acquire);
  std::memcpy(dest, &value, sizeof value);
}

// Sequentially consistent throughout: an update of a peer takes part in the same total order as
// the updates by loads and stores of PEs on this node.
template <class Word>
Word update(std::byte* place, AmoOp op, Word operand, Word compare) {
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(place));
  switch (op) {
    case AmoOp::kFetch:
      return word.load();
    case AmoOp::kSet:
    case AmoOp::kSwap:
      return word.exchange(operand);
    case AmoOp::kCompareSwap:
      word.compare_exchange_strong(compare, operand);
      return compare;
    case AmoOp::kAdd:
      return word.fetch_add(operand);
    case AmoOp::kAnd:
      return word.fetch_and(operand);
    case AmoOp::kOr:
      return word.fetch_or(operand);
    case AmoOp::kXor:
      return word.fetch_xor(operand);
  }
  return 0;
}

}  // namespace

/// A number is given out again as late as possible: messages for its last owner may be under way.
bool ServedMemory::add(const LocalSegment& segment, std::uint16_t& number) {
  if (segments_ == nullptr) return false;
  for (std::size_t tries = own_.size(); tries != kMost; ++tries, ++next_) {
    if (next_ == kMost) next_ = own_.size();
    if (segments_[next_].base != nullptr) continue;
    number = static_cast<std::uint16_t>(next_);
    segments_[next_++] = segment;
    // Release: who sees the number in range sees the segment.
    if (next_ > count_.load(std::memory_order_relaxed))
      count_.store(next_, std::memory_order_release);
    return true;
  }
  return false;
}

void store_payload(std::byte* dest, const void* source, std::size_t bytes) {
  switch (bytes) {
    case 0:
      return;
    case 1:
      return store_word<std::uint8_t>(dest, source);
    case 2:
      if (aligned(dest, 2)) return store_word<std::uint16_t>(dest, source);
      break;
    case 4:
      if (aligned(dest, 4)) return store_word<std::uint32_t>(dest, source);
      break;
    case 8:
      if (aligned(dest, 8)) return store_word<std::uint64_t>(dest, source);
      break;
    default:
      break;
  }
  std::memcpy(dest, source, bytes);
}

void load_payload(void* dest, const std::byte* source, std::size_t bytes) {
  switch (bytes) {
    case 0:
      return;
    case 1:
      return load_word<std::uint8_t>(dest, source);
    case 2:
      if (aligned(source, 2)) return load_word<std::uint16_t>(dest, source);
      break;
    case 4:
      if (aligned(source, 4)) return load_word<std::uint32_t>(dest, source);
      break;
    case 8:
      if (aligned(source, 8)) return load_word<std::uint64_t>(dest, source);
      break;
    default:
      break;
  }
  std::memcpy(dest, source, bytes);
}

std::uint64_t update_word(std::byte* word, unsigned width, AmoOp op, std::uint64_t operand,
                          std::uint64_t compare) {
  if (width == 8) return update<std::uint64_t>(word, op, operand, compare);
  return update<std::uint32_t>(word, op, static_cast<std::uint32_t>(operand),
                               static_cast<std::uint32_t>(compare));
}

}  // namespace gimlet::pgas::ucx
