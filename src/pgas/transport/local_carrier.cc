// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/local_carrier.h"

#include <algorithm>
#include <cstring>

#include "device/cpu/hooks.h"
#include "pgas/transport/ucx_memory.h"

namespace gimlet::pgas {
namespace {

/// The first free place of a table, which grows up to `limit`.
template <class Table, class IsFree>
bool take_place(Table& table, std::size_t limit, IsFree is_free, std::size_t& place) {
  place = static_cast<std::size_t>(std::ranges::find_if(table, is_free) - table.begin());
  if (place == table.size()) {
    if (place == limit) return false;
    table.emplace_back();
  }
  return true;
}

Refusal refusal_of(const CarriedRequest& request, std::uint64_t bytes, std::uint64_t size) {
  Refusal refusal;
  refusal.rank = request.rank;
  refusal.kind = request.kind;
  refusal.segment = request.segment;
  refusal.offset = request.offset;
  refusal.bytes = bytes;
  refusal.size = size;
  return refusal;
}

bool is_word(std::uint64_t offset, unsigned width) {
  return (width == 4 || width == 8) && offset % width == 0;
}

}  // namespace

Status LocalCarrier::add_segment(std::byte* base, std::size_t size, SegmentNumber& number) {
  const std::unique_lock lock(mutex_);
  std::size_t place = 0;
  if (!take_place(
          segments_, std::size_t{1} << 16, [](const Segment& s) { return s.size == 0; }, place))
    return fail(Code::kNoMemory, "at most 65536 pieces of memory can be offered at a time");
  segments_[place] = {base, size};
  number = static_cast<SegmentNumber>(place);
  return {};
}

void LocalCarrier::remove_segment(SegmentNumber number) {
  const std::unique_lock lock(mutex_);
  segments_[number] = {};
}

Status LocalCarrier::add_listener(Listener listener, ListenerNumber& number) {
  const std::unique_lock lock(mutex_);
  std::size_t place = 0;
  if (!take_place(
          listeners_, std::size_t{1} << 16, [](const auto& l) { return l == nullptr; }, place))
    return fail(Code::kNoMemory, "at most 65536 listeners can be there at a time");
  listeners_[place] = std::make_unique<Listener>(std::move(listener));
  number = static_cast<ListenerNumber>(place);
  return {};
}

void LocalCarrier::remove_listener(ListenerNumber number) {
  const std::unique_lock lock(mutex_);
  listeners_[number] = nullptr;
}

/// With the lock held by the caller.
std::byte* LocalCarrier::locate(SegmentNumber segment, std::uint64_t offset,
                                std::uint64_t bytes) const {
  if (segment >= segments_.size()) return nullptr;
  const Segment& found = segments_[segment];
  if (offset > found.size || bytes > found.size - offset) return nullptr;
  return found.base + offset;
}

/// Carries a request out in this rank's memory. False: nothing was done, for the reason given.
bool LocalCarrier::serve(CarriedRequest& request, Refusal& refusal) {
  const std::shared_lock lock(mutex_);
  const auto size_of = [&](SegmentNumber segment) {
    return segment < segments_.size() ? segments_[segment].size : 0;
  };
  if (request.kind == CarriedRequest::Kind::kAmo) {
    std::byte* word = locate(request.segment, request.offset, request.width);
    refusal = refusal_of(request, request.width, size_of(request.segment));
    if (word == nullptr || !is_word(request.offset, request.width)) return false;
    const std::uint64_t old =
        ucx::update_word(word, request.width, request.op, request.operand, request.compare);
    if (request.local != nullptr) std::memcpy(request.local, &old, request.width);
    return true;
  }
  const CarriedSignal& signal = request.signal;
  std::byte* word = nullptr;
  if (signal.present) {
    word = locate(signal.segment, signal.offset, 8);
    if (word == nullptr || !is_word(signal.offset, 8)) {
      refusal = refusal_of(request, 8, size_of(signal.segment));
      refusal.is_signal = true;
      refusal.segment = signal.segment;
      refusal.offset = signal.offset;
      return false;
    }
  }
  if (request.bytes != 0) {
    std::byte* place = locate(request.segment, request.offset, request.bytes);
    refusal = refusal_of(request, request.bytes, size_of(request.segment));
    if (place == nullptr) return false;
    if (request.kind == CarriedRequest::Kind::kGet) {
      ucx::load_payload(request.local, place, request.bytes);
    } else {
      ucx::store_payload(place, request.local, request.bytes);
    }
  }
  // Sequentially consistent: whoever loads the signal with acquire sees the payload.
  if (word != nullptr) {
    ucx::update_word(word, 8, signal.op == SignalOp::kSet ? AmoOp::kSet : AmoOp::kAdd, signal.value,
                     0);
    device::wake_device_threads();
  }
  return true;
}

void LocalCarrier::tell_refusal(ListenerNumber listener, const Refusal& refusal) {
  const std::shared_lock lock(mutex_);
  if (listener < listeners_.size() && listeners_[listener] != nullptr)
    listeners_[listener]->refused(refusal);
}

bool LocalCarrier::post(CarriedRequest& request) {
  Refusal refusal;
  const bool needs_peer = request.kind != CarriedRequest::Kind::kDrain;
  if (needs_peer && !peer(request.rank).serve(request, refusal))
    tell_refusal(request.listener, refusal);
  request.completed(request, {});
  return true;
}

bool LocalCarrier::post_note(int rank, ListenerNumber listener, std::span<const std::byte> note) {
  LocalCarrier& to = peer(rank);
  const std::shared_lock lock(to.mutex_);
  if (listener < to.listeners_.size() && to.listeners_[listener] != nullptr)
    to.listeners_[listener]->noted(rank_, note);
  return true;
}

}  // namespace gimlet::pgas
