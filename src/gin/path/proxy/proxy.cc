// SPDX-License-Identifier: BSD-3-Clause
#include "gin/path/proxy/proxy.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "device/clock.h"
#include "device/cores.h"
#include "device/log.h"
#include "gin/action.h"
#include "gin/device_text.h"
#include "gin/impl/exec.h"
#include "gin/path/proxy/error_note.h"
#include "gin/window_table.h"

namespace gimlet::gin {
namespace {

static_assert(static_cast<int>(::gin::AtomicOp::CompareSwap) ==
                  static_cast<int>(pgas::AmoOp::kCompareSwap) &&
              static_cast<int>(::gin::AtomicOp::Xor) == static_cast<int>(pgas::AmoOp::kXor));

constexpr int kBatch = 64;
constexpr std::uint64_t kSpinNs = 200'000;
// While something can only be tried again, and where the system has no barrier for all threads.
constexpr std::uint64_t kNapNs = 1'000'000;

// Initial-exec: a read is one instruction, in a shared library too.
[[gnu::tls_model("initial-exec")]] thread_local const Proxy* proxy_of_this_thread = nullptr;

/// More threads that spin than cores.
bool is_crowded() {
  static const bool crowded = device::allowed_cores() < 3 * device::local_pes();
  return crowded;
}

void pause_between_looks() {
  if (is_crowded()) {
    ::sched_yield();
  } else {
    __builtin_ia32_pause();
  }
}

ginOperation operation_of(std::uint32_t ring_operation) {
  switch (ring_operation) {
    case ginRingPutInline:
      return ginOpPutValue;
    case ginRingGet:
      return ginOpGet;
    case ginRingDrain:
      return ginOpBarrier;
    default:
      return ring_operation >= ginRingAtomic ? ginOpAtomic : ginOpPut;
  }
}

}  // namespace

bool Proxy::Common::tell_heard() {
  HeardError::Error error;
  if (!heard.take(error)) return false;
  setup.fail(error.record, error.has_fault ? "a kernel's " + setup.describe(error.fault) : "");
  return true;
}

Proxy::Proxy(Common& common, std::uint32_t number)
    : common_(common),
      setup_(common.setup),
      carrier_(*common.setup.carriers[number]),
      tells_errors_(number == 0) {
  ginDevComm words{};
  common.memory->fill(words);
  const std::span<ginRing> rings = common.memory->rings();
  const auto all = static_cast<std::uint32_t>(rings.size());
  const std::uint32_t first = number * common.contexts_each;
  for (std::uint32_t c = first; c < std::min(all, first + common.contexts_each); ++c) {
    contexts_.push_back(
        std::make_unique<ProxiedContext>(c, rings[c], static_cast<std::size_t>(setup_.ranks)));
    if (words.netCounters == nullptr) continue;
    contexts_.back()->counters =
        words.netCounters + c * (setup_.counters_pitch / sizeof(std::uint64_t));
  }
  parked_ = rings[first].parked;
}

Status Proxy::start() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals belong to the program's threads
  Status result;
  try {
    thread_ = std::thread([this] { run(); });
    ::pthread_setname_np(thread_.native_handle(), "gimlet-proxy");
  } catch (const std::system_error& error) {
    result = fail_errno(error.code().value(), "a proxy thread can't be started");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

bool Proxy::join() {
  if (!thread_.joinable()) return true;
  wake();
  thread_.join();
  log::debug(
      "the proxy of contexts {} to {} took {} requests in {} batches, drained {} times, had no "
      "room at once for {}, slept {} times and was woken {} times",
      contexts_.front()->index, contexts_.back()->index, counters_.requests.read(),
      counters_.batches.read(), counters_.drains.read(), counters_.queued.read(),
      counters_.parks.read(), counters_.wake_ups.read());
  return open_count_ == 0;
}

void Proxy::run() {
  proxy_of_this_thread = this;
  device::go_to(common_.placement);
  idle_since_ns_ = device::now_ns();
  for (;;) {
    bool moved = false;
    bool is_behind = false;
    for (auto& context : contexts_) {
      const int taken = look_at(*context);
      moved |= taken != 0;
      is_behind |= taken == kBatch;
    }
    moved |= carrier_.progress();
    moved |= take_completed();
    moved |= advance_queues();
    for (auto& context : contexts_) publish(*context);
    if (tells_errors_) moved |= common_.tell_heard();
    if (tells_errors_ && has_failed()) moved |= tell_peers();
    const bool done = open_count_ == 0 && !moved && untold_.empty();
    if (common_.stopping.load(std::memory_order_acquire) &&
        (done || common_.abandoned.load(std::memory_order_acquire)))
      break;
    if (moved) {
      idle_since_ns_ = 0;
      // Who waits for what has moved wants this core; who posts wants it when all is taken.
      if (is_crowded() && !is_behind) ::sched_yield();
    } else {
      rest();
    }
  }
  ended_.store(true, std::memory_order_release);
}

/// Takes what device code has posted, a batch at most. How much.
int Proxy::look_at(ProxiedContext& context) {
  Request request;
  int taken = 0;
  while (taken < kBatch && context.queued < ProxiedContext::kMostQueued &&
         context.consumer.take(request)) {
    accept(context, request);
    ++taken;
  }
  if (taken == 0) return 0;
  counters_.requests.add(static_cast<std::uint64_t>(taken));
  counters_.batches.add(1);
  return taken;
}

Lane& Proxy::lane_to(ProxiedContext& context, int peer) {
  std::unique_ptr<Lane>& lane = context.lanes[static_cast<std::size_t>(peer)];
  if (lane == nullptr) {
    lane = std::make_unique<Lane>();
    lane->peer = peer;
  }
  return *lane;
}

void Proxy::accept(ProxiedContext& context, const Request& request) {
  if (has_failed()) return;  // nothing is carried any more, and nobody waits for it
  OpenRequest& open = pool_.take();
  open.proxy = this;
  open.context = &context;
  open.number = context.consumer.next() - 1;
  open.operation = request.operation;
  open.carried.completed = &Proxy::on_completed;
  open.carried.listener = *listener_;
  ++open_count_;
  context.open.append(open);
  if (request.operation == ginRingDrain) return accept_drain(context, open, request);
  open.lane = &lane_to(context, static_cast<int>(request.peer));
  if (translate(request, open)) return enqueue(open);
  open.lane = nullptr;
  complete(open);
}

void Proxy::accept_drain(ProxiedContext& context, OpenRequest& open, const Request& request) {
  open.carried.kind = pgas::CarriedRequest::Kind::kDrain;
  if (request.peer != GIN_RING_ALL_PEERS) {
    open.lane = &lane_to(context, static_cast<int>(request.peer));
    open.carried.rank = open.lane->peer;
    open.carried.lane = context.index;
    return enqueue(open);
  }
  ++open.parts;  // until all parts are there
  for (auto& lane : context.lanes) {
    if (lane == nullptr) continue;
    OpenRequest& part = pool_.take();
    part.proxy = this;
    part.context = &context;
    part.whole = &open;
    part.number = open.number;
    part.operation = open.operation;
    part.lane = lane.get();
    part.carried.kind = pgas::CarriedRequest::Kind::kDrain;
    part.carried.rank = lane->peer;
    part.carried.lane = context.index;
    part.carried.completed = &Proxy::on_completed;
    part.carried.listener = *listener_;
    ++open.parts;
    ++open_count_;
    enqueue(part);
  }
  if (--open.parts == 0) complete(open);
}

pgas::SegmentNumber Proxy::segment_of(std::uint16_t window, std::uint32_t peer) const {
  return setup_.is_mapped[peer] ? window : setup_.windows[window].segments[peer];
}

/// False, after a report: the window was deregistered.
bool Proxy::is_live(const ginWindowEntry& window, const OpenRequest& open) {
  if (window.live == GIN_WINDOW_LIVE) return true;
  fail(open, ginInvalidArgument, ": a window was deregistered while requests named it");
  return false;
}

/// Fills in what the carrier needs. False: the request names what is not there any more.
bool Proxy::translate_atomic(const Request& request, OpenRequest& open) {
  const ginWindowEntry& window = setup_.windows[request.to_window];
  if (!is_live(window, open)) return false;
  pgas::CarriedRequest& carried = open.carried;
  carried.kind = pgas::CarriedRequest::Kind::kAmo;
  carried.op = static_cast<pgas::AmoOp>(request.operation - ginRingAtomic);
  carried.rank = static_cast<int>(request.peer);
  carried.lane = open.context->index;
  carried.segment = segment_of(request.to_window, request.peer);
  carried.offset = request.to_offset;
  carried.width = static_cast<std::uint8_t>(request.length);
  carried.operand = request.value;
  carried.compare = request.operand;
  if ((request.flags & ginRingFetch) == 0) return true;
  ginRingResult& result = open.context->results[request.result];
  result.value = 0;
  carried.local = &result.value;
  open.state = &result.state;
  open.state_after = ginResultHere;
  return true;
}

bool Proxy::translate(const Request& request, OpenRequest& open) {
  if (request.operation >= ginRingAtomic) return translate_atomic(request, open);
  pgas::CarriedRequest& carried = open.carried;
  const bool is_get = request.operation == ginRingGet;
  const bool is_inline = request.operation == ginRingPutInline;
  const ginWindowEntry& far = setup_.windows[is_get ? request.from_window : request.to_window];
  const ginWindowEntry& near = setup_.windows[is_get ? request.to_window : request.from_window];
  carried.kind = is_get ? pgas::CarriedRequest::Kind::kGet : pgas::CarriedRequest::Kind::kPut;
  carried.rank = static_cast<int>(request.peer);
  carried.lane = open.context->index;
  carried.bytes = request.length;
  if (request.length != 0) {
    if (!is_live(far, open) || (!is_inline && !is_live(near, open))) return false;
    carried.segment = segment_of(is_get ? request.from_window : request.to_window, request.peer);
    carried.offset = is_get ? request.from_offset : request.to_offset;
    open.inline_value = request.operand;
    const std::uint64_t offset = is_get ? request.to_offset : request.from_offset;
    carried.local = is_inline ? static_cast<void*>(&open.inline_value) : near.base + offset;
    if (!is_inline && near.staged != nullptr) stage(request, near, offset, open);
  }
  open.has_counter = (request.flags & ginRingCounter) != 0;
  open.counter = request.counter;
  return translate_signal(request, open);
}

/// The local end, which transports may not touch unless a device thread has bounced it.
void Proxy::stage(const Request& request, const ginWindowEntry& near, std::uint64_t offset,
                  OpenRequest& open) {
  if ((request.flags & ginRingBounced) != 0) {
    auto& taken = open.context->bounces->each[offset % GIN_RING_BOUNCES];
    open.carried.local = taken.bytes;
    open.state = &taken.state;
    open.state_after = ginBounceFree;
    return;
  }
  const auto& part = *static_cast<const StagedPart*>(near.staged);
  open.carried.local = part.base + offset;
  open.carried.local_kind = part.kind;
}

bool Proxy::translate_signal(const Request& request, OpenRequest& open) {
  pgas::CarriedSignal& signal = open.carried.signal;
  signal.present = (request.flags & (ginRingIndexSignal | ginRingVaSignal)) != 0;
  if (!signal.present) return true;
  signal.strong = (request.flags & ginRingStrong) != 0;
  signal.op = pgas::SignalOp::kAdd;
  signal.value = request.value;
  if ((request.flags & ginRingIndexSignal) != 0) {
    signal.segment = common_.peers[request.peer].signals;
    signal.offset = common_.peers[request.peer].signals_offset +
                    open.context->index * setup_.signals_pitch +
                    request.signal_place * sizeof(std::uint64_t);
    return true;
  }
  const ginWindowEntry& window = setup_.windows[request.signal_window];
  if (!is_live(window, open)) return false;
  signal.segment = segment_of(request.signal_window, request.peer);
  signal.offset = request.signal_place;
  return true;
}

/// Puts a request behind those of its lane, and posts what there is room for.
void Proxy::enqueue(OpenRequest& open) {
  ProxiedContext& context = *open.context;
  Lane& lane = *open.lane;
  if (open.carried.kind == pgas::CarriedRequest::Kind::kDrain) counters_.drains.add(1);
  const bool first = lane.open.empty();
  lane.open.append(open);
  // Release: lowered before publish() tells that the request was consumed.
  if (first) {
    std::atomic_ref(context.oldest[lane.peer]).store(open.number, std::memory_order_release);
  }
  (lane.first_queued == nullptr ? lane.first_queued : lane.last_queued->behind) = &open;
  lane.last_queued = &open;
  ++context.queued;
  if (!lane.is_listed) {
    advance(context, lane);
    if (lane.first_queued == nullptr) return;
    lane.is_listed = true;
    queues_.push_back({&context, &lane});
  }
  counters_.queued.add(1);
}

bool Proxy::advance(ProxiedContext& context, Lane& lane) {
  bool moved = false;
  while (lane.first_queued != nullptr && lane.posted < Lane::kMostPosted) {
    OpenRequest& open = *lane.first_queued;
    OpenRequest* const behind = open.behind;
    ++lane.posted;  // it may be complete before post() returns
    if (!carrier_.post(open.carried)) {
      --lane.posted;
      break;
    }
    lane.first_queued = behind;
    --context.queued;
    moved = true;
  }
  return moved;
}

bool Proxy::advance_queues() {
  bool moved = false;
  std::erase_if(queues_, [&](const Queue& queue) {
    moved |= advance(*queue.context, *queue.lane);
    queue.lane->is_listed = queue.lane->first_queued != nullptr;
    return !queue.lane->is_listed;
  });
  return moved;
}

/// On any thread; most requests complete on the proxy's own, which needs no locked instruction.
/// Release: what the completion brought is seen by take_completed(). The proxy may end once the
/// request is in the list; its memory stays until detach() has waited for this thread to leave the
/// carrier.
void Proxy::on_completed(pgas::CarriedRequest& carried, Status status) {
  auto& open = reinterpret_cast<OpenRequest&>(carried);
  Proxy& proxy = *open.proxy;
  open.status = std::move(status);
  if (proxy_of_this_thread == &proxy) {
    open.next_completed = std::exchange(proxy.completed_here_, &open);
    return;
  }
  open.next_completed = proxy.completed_.load(std::memory_order_relaxed);
  while (!proxy.completed_.compare_exchange_weak(
      open.next_completed, &open, std::memory_order_release, std::memory_order_relaxed)) {
  }
  if (std::atomic_ref(*proxy.parked_).load(std::memory_order_relaxed) != 0) proxy.bell_.ring();
}

bool Proxy::take_completed() {
  bool moved = end_all(std::exchange(completed_here_, nullptr));
  if (completed_.load(std::memory_order_relaxed) != nullptr)
    moved |= end_all(completed_.exchange(nullptr, std::memory_order_acquire));
  return moved;
}

/// False: the list is empty.
bool Proxy::end_all(OpenRequest* next) {
  const bool any = next != nullptr;
  while (next != nullptr) {
    OpenRequest& open = *next;
    next = open.next_completed;
    --open.lane->posted;
    if (!open.status.ok()) fail(open, ginRemoteError, " failed: " + open.status.message());
    complete(open);
  }
  return any;
}

/// A request is over: its lane, its context, its counter and its whole get to know.
void Proxy::complete(OpenRequest& open) {
  ProxiedContext& context = *open.context;
  if (open.lane != nullptr) {
    Lane& lane = *open.lane;
    lane.open.remove(open);
    std::atomic_ref(context.oldest[lane.peer])
        .store(lane.open.oldest(GIN_RING_NONE), std::memory_order_release);
  }
  if (open.has_counter) {
    std::atomic_ref counter(context.counters[open.counter]);
    // Release: the source may be written again.
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  if (open.state != nullptr) {
    // Release: the value is there, or the payload has been read.
    std::atomic_ref(*open.state).store(open.state_after, std::memory_order_release);
    gin_exec_wake();
  }
  OpenRequest* const whole = open.whole;
  if (whole == nullptr) context.open.remove(open);
  --open_count_;
  pool_.give_back(open);
  if (whole != nullptr && --whole->parts == 0) complete(*whole);
}

/// Device code hears of a batch at once. `consumed` is last: who sees a request consumed sees its
/// peer's `oldest` too.
void Proxy::publish(ProxiedContext& context) {
  const std::uint64_t consumed = context.consumer.next();
  const std::uint64_t done = context.open.oldest(consumed);
  bool news = false;
  if (done != context.published_done) {
    context.published_done = done;
    context.consumer.publish_done(done);
    news = true;
  }
  if (consumed != context.published_consumed) {
    context.published_consumed = consumed;
    context.consumer.publish_consumed();
    news = true;
  }
  if (news) gin_exec_wake();
}

bool Proxy::has_failed() const {
  return std::atomic_ref(setup_.error->state).load(std::memory_order_acquire) != ginErrorFine;
}

/// Once the own word is set, every peer's shall be. Direct ones have it by a store already, but
/// their proxies hear of it only here. False: nothing could be told just now.
bool Proxy::tell_peers() {
  if (!telling_) {
    telling_ = true;
    untold_ = setup_.connected;
    std::erase(untold_, setup_.rank);
  }
  if (untold_.empty() ||
      std::atomic_ref(setup_.error->state).load(std::memory_order_acquire) != ginErrorSet)
    return false;
  const ginErrorWord& word = *setup_.error;
  const ErrorNote note = {ginRemoteError, word.rank, word.peer, word.operation, word.offset};
  const std::size_t before = untold_.size();
  std::erase_if(untold_, [&](int rank) {
    return carrier_.post_note(rank, common_.peers[static_cast<std::size_t>(rank)].listener,
                              std::as_bytes(std::span(&note, 1)));
  });
  return untold_.size() != before;
}

/// `what`: behind the name of the operation.
void Proxy::fail(const OpenRequest& open, ginResult_t code, const std::string& what) {
  ErrorRecord record;
  record.code = code;
  record.rank = setup_.rank;
  record.peer = open.carried.rank;
  record.operation = operation_of(open.operation);
  record.offset = open.carried.offset;
  setup_.fail(record, std::string("a kernel's ") + operation_name(record.operation) + what);
}

bool Proxy::has_work() {
  if (completed_here_ != nullptr || completed_.load(std::memory_order_acquire) != nullptr)
    return true;
  if (common_.stopping.load(std::memory_order_acquire)) return true;
  if (tells_errors_ && common_.heard.is_here()) return true;
  return std::ranges::any_of(contexts_, [](const auto& context) {
    return context->queued < ProxiedContext::kMostQueued && context->consumer.is_ready();
  });
}

/// Between two looks that found nothing.
void Proxy::rest() {
  const std::uint64_t now = device::now_ns();
  if (idle_since_ns_ == 0) idle_since_ns_ = now;
  if (now - idle_since_ns_ < kSpinNs) return pause_between_looks();
  const std::uint32_t seen = bell_.rings();
  std::atomic_ref parked(*parked_);
  parked.store(1, std::memory_order_relaxed);
  const bool ordered = device::barrier_of_all_threads();
  const bool tries_again = !queues_.empty() || !untold_.empty() ||
                           (common_.stopping.load(std::memory_order_relaxed) && open_count_ != 0);
  const bool failed_unseen = tells_errors_ && has_failed() && !telling_;
  if (!has_work() && !failed_unseen) {
    counters_.parks.add(1);
    bell_.sleep(seen, ordered && !tries_again ? 0 : kNapNs);
    if (bell_.rings() != seen) counters_.wake_ups.add(1);
  }
  parked.store(0, std::memory_order_relaxed);
}

}  // namespace gimlet::gin
