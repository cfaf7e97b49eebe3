// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/local_carrier.h"

#include <mutex>

#include "pgas/transport/carry_out.h"

namespace gimlet::pgas {

Status LocalCarrier::add_segment(std::byte* base, std::size_t size, SegmentNumber& number) {
  const std::unique_lock lock(of(rank_).mutex);
  if (of(rank_).memory.add({base, size}, number)) return {};
  return fail(Code::kNoMemory, "at most {} pieces of memory can be offered at a time",
              kFirstStaged);
}

Status LocalCarrier::add_staged_segment(std::byte* base, std::size_t size,
                                        const device::MemoryKind& kind, SegmentNumber& number) {
  const std::unique_lock lock(of(rank_).mutex);
  if (of(rank_).memory.staged()->add(base, size, kind, number)) return {};
  return fail(Code::kNoMemory, "at most {} pieces of staged memory can be offered at a time",
              kFirstStaged);
}

void LocalCarrier::remove_segment(SegmentNumber number) {
  const std::unique_lock lock(of(rank_).mutex);
  of(rank_).memory.remove(number);
}

Status LocalCarrier::add_listener(Listener listener, ListenerNumber& number) {
  const std::unique_lock lock(of(rank_).mutex);
  return of(rank_).listeners.add(std::move(listener), number);
}

void LocalCarrier::remove_listener(ListenerNumber number) {
  const std::unique_lock lock(of(rank_).mutex);
  of(rank_).listeners.remove(number);
}

/// False: the target refused, for the reason given.
bool LocalCarrier::carry_out(CarriedRequest& request, Refusal& refusal) {
  Offers& target = of(request.rank);
  for (;;) {
    const std::shared_lock lock(target.mutex);
    const CarryStep step = carry_step(request, target.memory, refusal);
    if (step != CarryStep::kMore) return step == CarryStep::kDone;
  }
}

void LocalCarrier::tell_refused(ListenerNumber listener, const Refusal& refusal) {
  const std::shared_lock lock(of(rank_).mutex);
  if (const Listener* found = of(rank_).listeners.find(listener)) found->refused(refusal);
}

bool LocalCarrier::post(CarriedRequest& request) {
  Refusal refusal;
  if (!carry_out(request, refusal)) {
    request.is_refused = true;
    tell_refused(request.listener, refusal);
  }
  request.completed(request, {});
  return true;
}

bool LocalCarrier::post_note(int rank, ListenerNumber listener, std::span<const std::byte> note) {
  const std::shared_lock lock(of(rank).mutex);
  const Listener* found = of(rank).listeners.find(listener);
  if (found != nullptr && note.size() <= kNoteBytes) found->noted(rank_, note);
  return true;
}

}  // namespace gimlet::pgas
