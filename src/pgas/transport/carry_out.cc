// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/carry_out.h"

#include <algorithm>
#include <cstring>

#include "device/cpu/hooks.h"
#include "pgas/transport/ucx_memory.h"

namespace gimlet::pgas {
namespace {

constexpr std::uint64_t kStepBytes = 256 << 10;

bool is_word(std::uint64_t offset, unsigned width) {
  return (width == 4 || width == 8) && offset % width == 0;
}

/// The request as a refusal of [offset, offset + bytes) of a segment.
Refusal refusal_of(const CarriedRequest& request, const TargetMemory& memory, SegmentNumber segment,
                   std::uint64_t offset, std::uint64_t bytes) {
  Refusal refusal;
  refusal.rank = request.rank;
  refusal.kind = request.kind;
  refusal.segment = segment;
  refusal.offset = offset;
  refusal.bytes = bytes;
  refusal.size = memory.size_of(segment);
  return refusal;
}

CarryStep update_staged(CarriedRequest& request, const TargetMemory& memory, Refusal& refusal) {
  StagedSegments* const staged = memory.staged();
  std::uint64_t old = 0;
  if (staged == nullptr || !staged->is_word(request.segment, request.offset, request.width) ||
      !staged->update(request.segment, request.offset, request.width, request.op, request.operand,
                      request.compare, old)) {
    refusal = refusal_of(request, memory, request.segment, request.offset, request.width);
    return CarryStep::kRefused;
  }
  if (request.local != nullptr) std::memcpy(request.local, &old, request.width);
  return CarryStep::kDone;
}

CarryStep update(CarriedRequest& request, const TargetMemory& memory, Refusal& refusal) {
  if (is_staged(request.segment)) return update_staged(request, memory, refusal);
  std::byte* const word = memory.locate(request.segment, request.offset, request.width);
  if (word == nullptr || !is_word(request.offset, request.width)) {
    refusal = refusal_of(request, memory, request.segment, request.offset, request.width);
    return CarryStep::kRefused;
  }
  const std::uint64_t old =
      ucx::update_word(word, request.width, request.op, request.operand, request.compare);
  if (request.local != nullptr) std::memcpy(request.local, &old, request.width);
  device::wake_device_threads();
  return CarryStep::kDone;
}

void copy(CarriedRequest& request, std::byte* place) {
  const std::uint64_t bytes = std::min(kStepBytes, request.bytes - request.posted_bytes);
  auto* local = static_cast<std::byte*>(request.local) + request.posted_bytes;
  place += request.posted_bytes;
  if (request.kind == CarriedRequest::Kind::kGet) {
    ucx::load_payload(local, place, bytes);
  } else {
    ucx::store_payload(place, local, bytes);
  }
  request.posted_bytes += bytes;
}

/// A piece of a payload of a staged segment. False: the place is not there.
bool copy_staged(CarriedRequest& request, StagedSegments* staged) {
  if (staged == nullptr ||
      !staged->holds(request.segment, request.offset, request.bytes + request.following))
    return false;
  const std::uint64_t bytes = std::min(kStepBytes, request.bytes - request.posted_bytes);
  auto* local = static_cast<std::byte*>(request.local) + request.posted_bytes;
  const std::uint64_t offset = request.offset + request.posted_bytes;
  StagedCopy copy;
  const bool started = request.kind == CarriedRequest::Kind::kGet
                           ? staged->start_out(request.segment, offset, local, bytes, copy)
                           : staged->start_in(request.segment, offset, local, bytes, copy);
  if (!started) return false;
  staged->finish(copy);
  request.posted_bytes += bytes;
  return true;
}

/// At most 256 KiB of the payload. False: the place is not there.
bool copy_piece(CarriedRequest& request, const TargetMemory& memory) {
  if (is_staged(request.segment)) return copy_staged(request, memory.staged());
  std::byte* const place =
      memory.locate(request.segment, request.offset, request.bytes + request.following);
  if (place != nullptr) copy(request, place);
  return place != nullptr;
}

}  // namespace

bool find_signal(const TargetMemory& memory, SegmentNumber segment, std::uint64_t offset,
                 std::byte*& word) {
  word = nullptr;
  if (is_staged(segment))
    return memory.staged() != nullptr && memory.staged()->is_word(segment, offset, 8);
  std::byte* const found = memory.locate(segment, offset, 8);
  if (reinterpret_cast<std::uintptr_t>(found) % 8 == 0) word = found;
  return word != nullptr;
}

void raise_signal(const TargetMemory& memory, SegmentNumber segment, std::uint64_t offset,
                  std::byte* word, AmoOp op, std::uint64_t value) {
  if (word == nullptr) {
    std::uint64_t old = 0;
    memory.staged()->update(segment, offset, 8, op, value, 0, old);
    return;
  }
  // Sequentially consistent: whoever loads the signal with acquire sees the payload.
  ucx::update_word(word, 8, op, value, 0);
  device::wake_device_threads();
}

CarryStep carry_step(CarriedRequest& request, const TargetMemory& memory, Refusal& refusal) {
  if (request.kind == CarriedRequest::Kind::kDrain) return CarryStep::kDone;
  if (request.kind == CarriedRequest::Kind::kAmo) return update(request, memory, refusal);
  const CarriedSignal& signal = request.signal;
  std::byte* word = nullptr;
  if (signal.present && !find_signal(memory, signal.segment, signal.offset, word)) {
    refusal = refusal_of(request, memory, signal.segment, signal.offset, 8);
    refusal.is_signal = true;
    return CarryStep::kRefused;
  }
  if (request.bytes != 0) {
    if (!copy_piece(request, memory)) {
      refusal = refusal_of(request, memory, request.segment, request.offset,
                           request.bytes + request.following);
      return CarryStep::kRefused;
    }
    if (request.posted_bytes != request.bytes) return CarryStep::kMore;
  }
  if (signal.present && request.following == 0) {
    raise_signal(memory, signal.segment, signal.offset, word, update_of(signal.op), signal.value);
  }
  return CarryStep::kDone;
}

bool carry_out(CarriedRequest& request, const TargetMemory& memory, Refusal& refusal) {
  CarryStep step = CarryStep::kMore;
  while (step == CarryStep::kMore) step = carry_step(request, memory, refusal);
  return step == CarryStep::kDone;
}

}  // namespace gimlet::pgas
