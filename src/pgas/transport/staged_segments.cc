// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/staged_segments.h"

#include <cassert>

#include "device/backoff.h"
#include "device/cpu/hooks.h"
#include "pgas/transport/ucx_memory.h"

namespace gimlet::pgas {
namespace {

constexpr std::uint32_t kEnd = 0x10000;

/// One agent for words that are updated by copies, whoever offers them.
std::mutex& agent() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

StagedSegments::Engine& StagedSegments::engine_of(const device::MemoryKind& kind) {
  for (Engine& engine : engines_)
    if (engine.kind == &kind) return engine;
  return engines_.emplace_back(Engine{&kind, kind.make_copy_queue()});
}

bool StagedSegments::add(std::byte* base, std::size_t size, const device::MemoryKind& kind,
                         SegmentNumber& number) {
  assert(!kind.is_open_to_transports());
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t tries = kFirstStaged; tries != kEnd; ++tries) {
    number = static_cast<SegmentNumber>(next_);
    next_ = next_ + 1 == kEnd ? kFirstStaged : next_ + 1;
    if (segments_.try_emplace(number, Segment{base, size, nullptr}).second) {
      segments_[number].engine = &engine_of(kind);
      return true;
    }
  }
  return false;
}

void StagedSegments::remove(SegmentNumber number) {
  StagedCopy last;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = segments_.find(number);
    if (found == segments_.end()) return;
    last = {found->second.engine->queue.get(), found->second.engine->started};
    segments_.erase(found);
  }
  finish(last);
  const std::scoped_lock lock(agent());  // nobody is in the middle of an update
}

std::uint64_t StagedSegments::size_of(SegmentNumber number) const {
  const std::scoped_lock lock(mutex_);
  const auto found = segments_.find(number);
  return found == segments_.end() ? 0 : found->second.size;
}

/// Under the lock. Null when any byte of the range lies outside the segment.
std::byte* StagedSegments::locate(SegmentNumber number, std::uint64_t offset, std::uint64_t bytes,
                                  Engine*& engine) const {
  const auto found = segments_.find(number);
  if (found == segments_.end()) return nullptr;
  const Segment& segment = found->second;
  if (offset > segment.size || bytes > segment.size - offset) return nullptr;
  engine = segment.engine;
  return segment.base + offset;
}

bool StagedSegments::holds(SegmentNumber number, std::uint64_t offset, std::uint64_t bytes) const {
  const std::scoped_lock lock(mutex_);
  Engine* engine = nullptr;
  return locate(number, offset, bytes, engine) != nullptr;
}

bool StagedSegments::is_word(SegmentNumber number, std::uint64_t offset, unsigned width) const {
  if (width != 4 && width != 8) return false;
  const std::scoped_lock lock(mutex_);
  Engine* engine = nullptr;
  const std::byte* word = locate(number, offset, width, engine);
  return word != nullptr && reinterpret_cast<std::uintptr_t>(word) % width == 0;
}

bool StagedSegments::start_in(SegmentNumber number, std::uint64_t offset, const void* from,
                              std::size_t bytes, StagedCopy& copy) {
  const std::scoped_lock lock(mutex_);
  Engine* engine = nullptr;
  std::byte* const place = locate(number, offset, bytes, engine);
  if (place == nullptr) return false;
  engine->started = engine->queue->start(place, from, bytes);
  copy = {engine->queue.get(), engine->started};
  return true;
}

bool StagedSegments::start_out(SegmentNumber number, std::uint64_t offset, void* to,
                               std::size_t bytes, StagedCopy& copy) {
  const std::scoped_lock lock(mutex_);
  Engine* engine = nullptr;
  const std::byte* const place = locate(number, offset, bytes, engine);
  if (place == nullptr) return false;
  engine->started = engine->queue->start(to, place, bytes);
  copy = {engine->queue.get(), engine->started};
  return true;
}

bool StagedSegments::is_over(const StagedCopy& copy) const {
  const std::scoped_lock lock(mutex_);
  return copy.queue == nullptr || copy.queue->finished() >= copy.number;
}

void StagedSegments::finish(const StagedCopy& copy) const {
  device::Backoff backoff;
  while (!is_over(copy)) backoff.step();
}

bool StagedSegments::update(SegmentNumber number, std::uint64_t offset, unsigned width, AmoOp op,
                            std::uint64_t operand, std::uint64_t compare, std::uint64_t& old) {
  const std::scoped_lock agent_lock(agent());
  std::byte* word = nullptr;
  Engine* engine = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    word = locate(number, offset, width, engine);
  }
  if (word == nullptr) return false;
  const device::MemoryKind& kind = *engine->kind;
  if (std::byte* const here = kind.host_word(word)) {
    old = ucx::update_word(here, width, op, operand, compare);
  } else {
    std::uint64_t value = 0;
    kind.copy(&value, word, width);
    old = ucx::update_word(reinterpret_cast<std::byte*>(&value), width, op, operand, compare);
    kind.copy(word, &value, width);
  }
  device::wake_device_threads();
  return true;
}

}  // namespace gimlet::pgas
