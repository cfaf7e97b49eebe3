// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/local_carrier.h"

#include <algorithm>

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
  const std::uint64_t size = size_of(segment);
  if (size == 0 || offset > size || bytes > size - offset) return nullptr;
  return segments_[segment].base + offset;
}

std::uint64_t LocalCarrier::size_of(SegmentNumber segment) const {
  return segment < segments_.size() ? segments_[segment].size : 0;
}

/// Carries a request out in this rank's memory. False: nothing was done, for the reason given.
bool LocalCarrier::serve(CarriedRequest& request, Refusal& refusal) {
  const std::shared_lock lock(mutex_);
  return carry_out(request, *this, refusal);
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
