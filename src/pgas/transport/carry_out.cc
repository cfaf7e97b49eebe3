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

CarryStep update(CarriedRequest& request, const TargetMemory& memory, Refusal& refusal) {
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

}  // namespace

CarryStep carry_step(CarriedRequest& request, const TargetMemory& memory, Refusal& refusal) {
  if (request.kind == CarriedRequest::Kind::kDrain) return CarryStep::kDone;
  if (request.kind == CarriedRequest::Kind::kAmo) return update(request, memory, refusal);
  const CarriedSignal& signal = request.signal;
  std::byte* word = nullptr;
  if (signal.present) {
    word = memory.locate(signal.segment, signal.offset, 8);
    if (word == nullptr || !is_word(signal.offset, 8)) {
      refusal = refusal_of(request, memory, signal.segment, signal.offset, 8);
      refusal.is_signal = true;
      return CarryStep::kRefused;
    }
  }
  if (request.bytes != 0) {
    std::byte* const place = memory.locate(request.segment, request.offset, request.bytes);
    if (place == nullptr) {
      refusal = refusal_of(request, memory, request.segment, request.offset, request.bytes);
      return CarryStep::kRefused;
    }
    copy(request, place);
    if (request.posted_bytes != request.bytes) return CarryStep::kMore;
  }
  if (word == nullptr) return CarryStep::kDone;
  // Sequentially consistent: whoever loads the signal with acquire sees the payload.
  ucx::update_word(word, 8, update_of(signal.op), signal.value, 0);
  device::wake_device_threads();
  return CarryStep::kDone;
}

bool carry_out(CarriedRequest& request, const TargetMemory& memory, Refusal& refusal) {
  CarryStep step = CarryStep::kMore;
  while (step == CarryStep::kMore) step = carry_step(request, memory, refusal);
  return step == CarryStep::kDone;
}

}  // namespace gimlet::pgas
