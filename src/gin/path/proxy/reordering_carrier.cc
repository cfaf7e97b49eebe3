// SPDX-License-Identifier: BSD-3-Clause
#include "gin/path/proxy/reordering_carrier.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "device/clock.h"

namespace gimlet::gin {
namespace {

constexpr std::uint64_t kMostDelayNs = 2'000'000;
constexpr std::uint64_t kMostDelayShift = 8;
// Between two looks; a thread that did not run for a while must not find everything due at once,
// since others did not run either.
constexpr std::uint64_t kMostStepNs = 500'000;
constexpr std::uint64_t kMostPayload = 1 << 20;

/// Numbers that follow from a few others (splitmix64).
class Draws {
 public:
  void mix(std::uint64_t value) { state_ = next() ^ value; }
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  bool coin() { return next() % 2 == 0; }
  /// From none to the longest, all orders of magnitude alike: most requests are soon out of the
  /// way, and some are late enough for others to notice.
  std::uint64_t delay_ns() {
    const std::uint64_t limit = kMostDelayNs >> next() % kMostDelayShift;
    return next() % limit;
  }

 private:
  std::uint64_t state_ = 0;
};

bool is_put(const pgas::CarriedRequest& request) {
  return request.kind == pgas::CarriedRequest::Kind::kPut;
}

/// Does a strong signal behind it come after it?
bool is_covered(const pgas::CarriedRequest& request) {
  return (is_put(request) && request.bytes != 0) ||
         request.kind == pgas::CarriedRequest::Kind::kAmo;
}

}  // namespace

/// When a request is released, not before the time `drawn`.
std::uint64_t ReorderingCarrier::release_time(const Held& held, Lane& lane,
                                              std::uint64_t drawn) const {
  const pgas::CarriedRequest& request = held.carried;
  std::uint64_t time = drawn;
  if (is_put(request) && request.signal.present && request.signal.strong)
    time = std::max(time, lane.puts_released_ns);
  if (request.kind == pgas::CarriedRequest::Kind::kDrain)
    time = std::max(time, lane.all_released_ns);
  if (is_covered(request)) lane.puts_released_ns = std::max(lane.puts_released_ns, time);
  lane.all_released_ns = std::max(lane.all_released_ns, time);
  return time;
}

bool ReorderingCarrier::post(pgas::CarriedRequest& request) {
  if (held_.empty()) looked_ns_ = device::now_ns();
  held_.emplace_front();
  Held* const held = &held_.front();
  held->place = held_.begin();
  held->carried = std::move(request);  // but for its failure, the original stays whole
  held->carried.completed = &ReorderingCarrier::on_completed;
  held->carrier = this;
  held->original = &request;
  Lane& lane = lanes_[{request.rank, request.lane}];
  Draws draws;
  for (const std::uint64_t value :
       {seed_, static_cast<std::uint64_t>(rank_), static_cast<std::uint64_t>(request.rank),
        std::uint64_t{request.lane}, lane.posted++})
    draws.mix(value);
  std::uint64_t time = time_ns_ + draws.delay_ns();
  held->tells_after_ns = draws.delay_ns();
  if (is_put(request) && request.bytes <= kMostPayload && draws.coin()) {
    events_.insert({time, {held, Step::kRead}});
    time += draws.delay_ns();
  }
  events_.insert({release_time(*held, lane, time), {held, Step::kRelease}});
  return true;
}

bool ReorderingCarrier::progress() {
  bool moved = inner_->progress();
  if (held_.empty()) return moved;
  advance_clock();
  moved |= take_completed();
  moved |= take_steps();
  if (!moved) ::sched_yield();
  return true;
}

void ReorderingCarrier::advance_clock() {
  const std::uint64_t now = device::now_ns();
  time_ns_ += std::min(now - looked_ns_, kMostStepNs);
  looked_ns_ = now;
}

bool ReorderingCarrier::take_completed() {
  std::vector<Held*> completed;
  {
    const std::scoped_lock lock(completed_mutex_);
    completed.swap(completed_);
  }
  for (Held* held : completed) {
    if (held->original == nullptr) {
      tell(*held);
    } else {
      events_.insert({time_ns_ + held->tells_after_ns, {held, Step::kTell}});
    }
  }
  return !completed.empty();
}

/// A rank that has no room just now gets nothing else until it has: the order is drawn already.
bool ReorderingCarrier::take_steps() {
  std::vector<int> full;
  bool moved = false;
  for (auto next = events_.begin(); next != events_.end() && next->first <= time_ns_;) {
    const Event event = next->second;
    const int rank = event.held->carried.rank;
    const bool waits = event.step == Step::kRelease && std::ranges::find(full, rank) != full.end();
    if (waits || !take_step(event)) {
      full.push_back(rank);
      ++next;
    } else {
      next = events_.erase(next);
      moved = true;
    }
  }
  return moved;
}

/// False: there is no room for it.
bool ReorderingCarrier::take_step(const Event& event) {
  Held& held = *event.held;
  switch (event.step) {
    case Step::kRelease:
      return inner_->post(held.carried);
    case Step::kTell:
      tell(held);
      return true;
    case Step::kRead:
      break;
  }
  if (held.carried.bytes != 0) {
    const auto* source = static_cast<const std::byte*>(held.carried.local);
    held.payload.assign(source, source + held.carried.bytes);
    held.carried.local = held.payload.data();
  }
  pgas::CarriedRequest& original = *std::exchange(held.original, nullptr);
  original.completed(original, {});
  return true;
}

/// The end of a request.
void ReorderingCarrier::tell(Held& held) {
  if (held.original != nullptr) {
    held.original->is_refused = held.carried.is_refused;
    held.original->completed(*held.original, std::move(held.status));
  }
  held_.erase(held.place);
}

/// On any thread.
void ReorderingCarrier::on_completed(pgas::CarriedRequest& carried, Status status) {
  auto& held = reinterpret_cast<Held&>(carried);
  held.status = std::move(status);
  const std::scoped_lock lock(held.carrier->completed_mutex_);
  held.carrier->completed_.push_back(&held);
}

}  // namespace gimlet::gin
