// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/ucx_transport.h"

#include <algorithm>
#include <utility>

#include "device/backoff.h"
#include "device/clock.h"
#include "pgas/memory_barrier.h"

namespace gimlet::pgas::ucx {
namespace {

constexpr unsigned kLookAroundEvery = 64;
constexpr unsigned kBusyLooks = 64;
// Of one lane, so that a peer that stands still stops nobody who talks to others.
constexpr std::uint32_t kMaxRequests = 256;
constexpr std::uint32_t kMaxOperations = 4096;
constexpr int kClosingLooks = 1000;

}  // namespace

UcxTransport::Turn::Turn(UcxTransport& transport, Patience patience)
    : transport_(transport), held_(try_take()) {
  device::Backoff backoff;
  while (!held_ && patience == Patience::kWait) {
    backoff.step();
    held_ = try_take();
  }
}

UcxTransport::UcxTransport(const TransportOwner& owner, BulkPath bulk)
    : owner_(owner),
      bulk_(bulk),
      memory_(owner.segments),
      lanes_(static_cast<std::atomic<Lane*>*>(
                 std::calloc(static_cast<std::size_t>(owner.size), sizeof(std::atomic<Lane*>))),
             &std::free),
      operations_(*this) {
  owner_.segments = memory_.segments();
}

Status UcxTransport::open(std::vector<std::byte>& blob) {
  if (lanes_ == nullptr)
    return fail(Code::kNoMemory, "no memory for the lanes to {} PEs", owner_.size);
  GIMLET_TRY(worker_.open(owner_.segments));
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.cb = &UcxTransport::on_message;
  handler.arg = this;
  if (const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_.handle(), &handler);
      status != UCS_OK) {
    return fail(Code::kSystem, "UCX takes no message handler: {}", ucs_status_string(status));
  }
  Blob description;
  GIMLET_TRY(worker_.describe(owner_.segments, description));
  blob = encode(description);
  return {};
}

/// The caller has synchronised the PEs that are left. A peer that is gone can't delay us: endpoints
/// are closed by force, and what UCX still holds after some looks is given up with the worker.
/// Requests of proxies that are still open end with an error.
UcxTransport::~UcxTransport() {
  if (worker_.handle() == nullptr) return;
  Turn turn(*this, Turn::Patience::kWait);
  const bool is_clean = std::ranges::all_of(made_lanes_, [](const auto& lane) {
    return !lane->is(Lane::State::kFailed) && lane->nothing_open() &&
           lane->carried.after == &lane->carried;
  });
  for (const std::unique_ptr<Lane>& lane : made_lanes_)
    fail_lane(*lane, fmt::format("PE {} can't be reached any more: this PE has left", lane->pe));
  close_failed();
  for (int look = 0; look < kClosingLooks && requests_ != 0; ++look)
    ucp_worker_progress(worker_.handle());
  for (const std::unique_ptr<Lane>& lane : made_lanes_) {
    for (const Lane::Remote& remote : lane->remote) ucp_rkey_destroy(remote.key);
  }
  worker_.close(is_clean && requests_ == 0);
  // Nobody reads sources any more.
  for (const std::unique_ptr<Lane>& lane : made_lanes_) {
    while (lane->carried.after != &lane->carried) lose(*lane->carried.after);
  }
}

bool UcxTransport::room(const Lane& lane) const {
  return lane.requests < kMaxRequests && lane.operations < kMaxOperations;
}

/// Whether a request of class `what` may be posted now, given the last fence.
bool UcxTransport::in_order(const Lane& lane, Class what) const {
  if (what == Class::kGet) return true;
  if (lane.flushed_to < std::min(fence_, lane.last_put)) return false;
  if (what == Class::kPut && lane.acknowledged_to < std::min(fence_, lane.last_message))
    return false;
  if (lane.put_signals == 0) return true;
  for (const Operation* op = lane.open.after; op != &lane.open && op->sequence <= fence_;
       op = op->after) {
    if (op->kind == OperationKind::kPutSignal && (what == Class::kPut || op->signal_sequence == 0))
      return false;
  }
  return true;
}

bool UcxTransport::done_to(const Lane& lane, std::uint64_t sequence) const {
  return (lane.nothing_open() || lane.open.after->sequence > sequence) &&
         lane.flushed_to >= std::min(sequence, lane.last_put) &&
         lane.acknowledged_to >= std::min(sequence, lane.last_message);
}

bool UcxTransport::clean(const Lane& lane) const {
  return lane.nothing_open() && lane.flushed_to >= lane.last_put &&
         lane.acknowledged_to >= lane.last_message;
}

/// Starts what makes everything up to `sequence` done, unless it is under way.
void UcxTransport::push(Lane& lane, std::uint64_t sequence) {
  if (!lane.is(Lane::State::kReady)) return;
  if (lane.flushing_to < std::min(sequence, lane.last_put))
    flush(operations_.take(OperationKind::kFlush, &lane, false));
  std::uint64_t ask_to = std::min(sequence, lane.last_message);
  if (lane.put_signals != 0) {
    for (const Operation* op = lane.open.after; op != &lane.open && op->sequence <= sequence;
         op = op->after)
      ask_to = std::max(ask_to, op->signal_sequence);
  }
  if (lane.asked_to < ask_to) ask_done(lane);
}

void UcxTransport::defer(Status error) {
  if (deferred_.ok()) deferred_ = std::move(error);
}

/// Ends the wait for a peer that died, or that never answered.
Status UcxTransport::look_around(Lane& lane, std::uint64_t waited_ns) {
  const int dead = owner_.dead_peer ? owner_.dead_peer() : -1;
  const bool late = static_cast<double>(waited_ns) > owner_.connect_timeout * 1e9;
  if (dead != lane.pe && !late) return {};
  Turn turn(*this, Turn::Patience::kWait);
  if (dead == lane.pe) {
    fail_lane(lane, fmt::format("PE {} died", lane.pe));
  } else if (dead >= 0) {  // only one death is reported
    fail_lane(lane, fmt::format("PE {} died, and PE {} did not answer within {} s", dead, lane.pe,
                                owner_.connect_timeout));
  } else if (!lane.heard) {
    fail_lane(lane, fmt::format("PE {} did not answer within {} s of first contact", lane.pe,
                                owner_.connect_timeout));
  } else {
    return {};
  }
  close_failed();
  return fail(Code::kRemote, "{}", lane.why_failed);
}

/// Looks at `done` under the token, with progress between the looks, until it holds or the lane
/// fails.
Status UcxTransport::wait_on(Lane& lane, Condition done) {
  device::Backoff backoff;
  std::uint64_t started_ns = 0;
  for (unsigned look = 1;; ++look) {
    if (Turn turn(*this, Turn::Patience::kTry); turn) {
      caller_turns_.store(caller_turns_.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
      if (done()) return {};
      if (lane.is(Lane::State::kFailed)) return fail(Code::kRemote, "{}", lane.why_failed);
      ucp_worker_progress(worker_.handle());
      close_failed();
      if (done()) return {};
    }
    if (look % kLookAroundEvery == 0) {
      const std::uint64_t now = device::now_ns();
      if (started_ns == 0) started_ns = now;
      GIMLET_TRY(look_around(lane, now - started_ns));
    }
    backoff.step();
  }
}

/// Posts a request when the order allows it, and with `wait` returns when its source may be reused
/// and its result is here. `post` sets `op` (awaited) and returns true when all of it is posted; it
/// is called again until then.
Status UcxTransport::issue(Lane& lane, Class what, bool wait, Operation*& op, Condition post) {
  bool ordered = false;
  bool posted = false;
  Status result;
  const auto step = [&] {
    if (!posted) {
      if (!lane.is(Lane::State::kReady)) return false;
      if (!ordered && !in_order(lane, what)) {
        push(lane, fence_);
        return false;
      }
      ordered = true;
      posted = room(lane) && post();
      if (!posted) return false;
    }
    const bool over = op->finished || (op->kind == OperationKind::kPutSignal && op->source_free);
    if (wait && !over) return false;
    if (op->finished) result = std::exchange(op->error, {});
    op->awaited = false;
    recycle_if_unused(*op);
    return true;
  };
  Status waited = wait_on(lane, step);
  if (!waited.ok() && op != nullptr) {
    Turn turn(*this, Turn::Patience::kWait);
    op->awaited = false;
    op->error = {};
    op->posted = true;
    if (op->kind == OperationKind::kTransfer && op->parts == 0) finish(*op);
    recycle_if_unused(*op);
  }
  leave();
  return waited.ok() ? std::move(result) : std::move(waited);
}

/// A caller goes away: what it leaves unsent is the helper's business.
void UcxTransport::leave() {
  if (unsent_.load(std::memory_order_relaxed) != 0 &&
      helper_asleep_.load(std::memory_order_relaxed) &&
      helper_asleep_.exchange(false, std::memory_order_relaxed))
    worker_.wake();
}

Status UcxTransport::fence() {
  // Own stores, and puts to this PE itself.
  store_release_barrier();
  Turn turn(*this, Turn::Patience::kWait);
  fence_ = sequence_;
  return {};
}

/// A lane that owes something up to `sequence`, or null; forgets lanes that owe nothing at all.
Lane* UcxTransport::first_not_done(std::uint64_t sequence, Status& failed) {
  for (std::size_t left = dirty_.size(); left != 0; --left) {
    Lane& lane = *dirty_[left - 1];
    const bool lost = lane.is(Lane::State::kFailed);
    if (lost && failed.ok()) failed = fail(Code::kRemote, "{}", lane.why_failed);
    if (lost || clean(lane)) {
      lane.dirty = false;
      dirty_[left - 1] = dirty_.back();
      dirty_.pop_back();
    } else if (!done_to(lane, sequence)) {
      return &lane;
    }
  }
  return nullptr;
}

Status UcxTransport::quiet() {
  // Own stores before, own loads after: a store-to-load barrier.
  store_to_load_barrier();
  std::uint64_t sequence = 0;
  Lane* owing = nullptr;
  Status result;
  {
    Turn turn(*this, Turn::Patience::kWait);
    sequence = sequence_;
    for (Lane* lane : dirty_) push(*lane, sequence);
    owing = first_not_done(sequence, result);
  }
  const auto settle = [&] {
    // A signal behind a flush becomes a message that is still to be asked for.
    push(*owing, sequence);
    if (!done_to(*owing, sequence)) return false;
    owing = first_not_done(sequence, result);
    return true;
  };
  while (owing != nullptr) {
    if (wait_on(*owing, settle).ok()) continue;
    Turn turn(*this, Turn::Patience::kWait);
    owing = first_not_done(sequence, result);
  }
  Turn turn(*this, Turn::Patience::kWait);
  return deferred_.ok() ? std::move(result) : std::exchange(deferred_, {});
}

/// Requests of proxies are messages: a peer that answers has handled all before, but for the copies
/// of pieces that it had to stage.
void UcxTransport::quiet_carried() {
  struct Asked {
    Lane* lane;
    std::uint64_t staged_to;
  };
  std::vector<Asked> asked;
  std::uint64_t sequence = 0;
  {
    Turn turn(*this, Turn::Patience::kWait);
    sequence = ++sequence_;
    for (const auto& lane : made_lanes_) {
      if (!std::exchange(lane->owes_quiet, false) || !lane->is(Lane::State::kReady)) continue;
      ask_done(*lane);
      asked.push_back({lane.get(), lane->staged.used});
    }
  }
  for (const auto& [lane, staged_to] : asked) {
    const auto is_quiet = [&, lane = lane, to = staged_to] {
      return lane->acknowledged_to >= sequence && lane->staged.over >= to;
    };
    static_cast<void>(wait_on(*lane, is_quiet));
  }
  leave();
}

bool UcxTransport::progress() {
  const bool is_helper =
      ::pthread_equal(helper_.load(std::memory_order_relaxed), ::pthread_self()) != 0;
  if (is_helper) helper_asleep_.store(false, std::memory_order_relaxed);
  const int dead = owner_.dead_peer ? owner_.dead_peer() : -1;
  if (const int source = unreached_.load(std::memory_order_relaxed); source >= 0) {
    Status failed;
    try_reach(source, failed);
  }
  Turn turn(*this, Turn::Patience::kTry);
  if (!turn) return false;
  bury(dead);
  if (!is_helper) {
    caller_turns_.store(caller_turns_.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  }
  bool moved = ucp_worker_progress(worker_.handle()) != 0;
  if (staging_ != nullptr && staging_->is_busy()) moved |= pump_staging();
  close_failed();
  return moved;
}

bool UcxTransport::arm() {
  helper_.store(::pthread_self(), std::memory_order_relaxed);
  const std::uint64_t turns = caller_turns_.load(std::memory_order_relaxed);
  if (turns != seen_turns_) {
    seen_turns_ = turns;
    worker_.nap();
    return true;
  }
  Turn turn(*this, Turn::Patience::kTry);
  if (!turn) return false;
  // Unsent requests are looked at again after a nap. Whoever leaves one behind later takes the
  // token after us, so it sees that the helper sleeps.
  const bool copies = staging_ != nullptr && staging_->is_busy();
  if (!copies && unsent_.load(std::memory_order_relaxed) == 0 && worker_.watch()) {
    busy_looks_ = 0;
    helper_asleep_.store(true, std::memory_order_relaxed);
    return true;
  }
  if (++busy_looks_ < kBusyLooks) return false;
  busy_looks_ = 0;
  worker_.nap();
  return true;
}

}  // namespace gimlet::pgas::ucx

namespace gimlet::pgas {

Status make_ucx_transport(const TransportOwner& owner, std::unique_ptr<Transport>& out,
                          std::vector<std::byte>& blob) {
  auto transport = std::make_unique<ucx::UcxTransport>(owner);
  GIMLET_TRY(transport->open(blob));
  out = std::move(transport);
  return {};
}

}  // namespace gimlet::pgas
