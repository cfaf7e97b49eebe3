// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/fiber_block.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "device/cpu/jump.h"
#include "device/cpu/worker.h"
#include "gin/result.h"

namespace gimlet::device {

using boost::context::detail::fcontext_t;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

namespace {

constexpr std::size_t kStacksAtOnce = 32;
constexpr unsigned kThreadsInFirstCache = 64;
/// A block gives others a turn after so many hand-overs, about 0.3 ms.
constexpr unsigned kStepsPerTurn = 16384;

}  // namespace

bool FiberBlock::start(Launch& new_launch, std::uint64_t number) {
  launch = &new_launch;
  index = new_launch.block_index(number);
  sync.reset(new_launch.threads());
  started_ = stacks_used_ = resume_at_ = 0;
  return shared.reset(new_launch.config.shared_bytes);
}

void FiberBlock::finish() {
  for (unsigned thread = 0; thread < started_; ++thread)
    fibers[thread].store(nullptr, std::memory_order_relaxed);
  started_ = 0;
  pool_.give_back(stacks_);
  launch = nullptr;
}

/// The fiber of a runnable thread. Threads run for the first time in order, because all of them
/// are runnable at the start and the ring is walked in order: the next new one is always started_.
inline Fiber& FiberBlock::next_fiber(Fiber& self, unsigned thread) {
  if (thread == started_ && make_fiber(thread) == nullptr) abandon(self);
  return *fibers[thread].load(std::memory_order_relaxed);
}

/// The fiber behind `to` probably runs next and stopped at the same depth: its lines come from the
/// second-level cache while `to` runs.
inline void FiberBlock::fetch_ahead(const Fiber& to) const {
  if (to.rank + 1 >= started_) return;
  const auto* const ahead =
      reinterpret_cast<const char*>(fibers[to.rank + 1].load(std::memory_order_relaxed));
  const std::ptrdiff_t depth =
      reinterpret_cast<const char*>(&to) - static_cast<const char*>(to.context);
  __builtin_prefetch(ahead);
  for (std::ptrdiff_t line = 0; line < 3; ++line) __builtin_prefetch(ahead - depth + line * 64);
}

/// Jumps from one fiber to another one. Whoever is jumped to stores where the other one goes on.
inline void FiberBlock::hop(Fiber& from, Fiber& to) {
  worker->run_next(to);
  if (started_ > kThreadsInFirstCache) fetch_ahead(to);
  from.stack.leave_for(to.stack);
  const transfer_t back = jump(to.context, &from);
  from.stack.arrive();
  land(back);
}

/// First thing of a fiber that goes on: `from` left its context behind and must be resumable before
/// anything else happens. The worker passes no fiber.
inline void FiberBlock::land(transfer_t from) {
  if (from.data != nullptr) {
    static_cast<Fiber*>(from.data)->context = from.fctx;
  } else {
    worker->set_context(from.fctx);
  }
}

void fiber_main(transfer_t from) {
  Fiber& self = static_cast<Fiber&>(*current_thread());
  self.stack.arrive();
  self.owner().land(from);
  self.owner().thread_main(self);
}

Fiber* FiberBlock::make_fiber(unsigned thread) {
  if (stacks_used_ == stacks_.size()) {
    const std::size_t left = launch->threads() - thread;
    if (const Status status = pool_.take(std::min(left, kStacksAtOnce), stacks_); !status.ok()) {
      launch->fail(ginSystemError, status.message());
      return nullptr;
    }
  }
  std::byte* const stack = stacks_[stacks_used_++];
  std::byte* const top = pool_.top(stack) - sizeof(Fiber);
  std::byte* const low = StackPool::low(stack);
  SanitizedStack known;
  // What the thread sanitizer knows the stack by stays with it; on fresh memory it is null.
  if constexpr (kSanitized) known = std::launder(reinterpret_cast<Fiber*>(top))->stack;
  static_assert(std::is_trivially_destructible_v<Fiber>);
  auto* const fiber = new (top) Fiber;
  fiber->stack = known;
  fiber->stack.start_fiber(low, static_cast<std::size_t>(top - low));
  fiber->low = low;
  fiber->is_fiber = true;
  fiber->context = make_fcontext(top, static_cast<std::size_t>(top - low), fiber_main);
  identify(*fiber, *this, thread);
  // Release: the monitor that takes the pointer finds the fiber complete.
  fibers[thread].store(fiber, std::memory_order_release);
  started_ = thread + 1;
  return fiber;
}

Leave FiberBlock::enter(Worker& runner) {
  worker = &runner;
  fruitless_ = steps_ = 0;
  progressed = false;
  if (resume_at_ == started_ && make_fiber(resume_at_) == nullptr) return Leave::kFailed;
  Fiber& to = *fibers[resume_at_].load(std::memory_order_relaxed);
  runner.run_next(to);
  runner.stack().leave_for(to.stack);
  const transfer_t back = jump(to.context, nullptr);
  runner.stack().arrive();
  static_cast<Fiber*>(back.data)->context = back.fctx;
  return leave_;
}

/// Back to the worker; returns when the block is entered again at this fiber.
void FiberBlock::leave(Fiber& self, Leave reason, unsigned resume_at) {
  leave_ = reason;
  resume_at_ = resume_at;
  const bool last = reason == Leave::kDone || reason == Leave::kFailed;
  self.stack.leave_for(worker->stack(), last);
  const transfer_t back = jump(worker->context(), &self);
  self.stack.arrive();
  land(back);
}

void FiberBlock::abandon(Fiber& self) {
  leave(self, Leave::kFailed, 0);
  std::abort();  // nobody enters a failed block again
}

inline void FiberBlock::note_progress() {
  fruitless_ = 0;
  progressed = true;
}

void FiberBlock::wait_step(Fiber& self, bool moved) {
  if (launch->has_failed()) abandon(self);
  if (moved) {
    note_progress();
  } else {
    ++fruitless_;
  }
  const unsigned runnable = sync.runnable();
  const unsigned next = sync.next_after(self.rank);
  if (fruitless_ >= runnable) {
    leave(self, Leave::kWaiting, next);
  } else if (++steps_ >= kStepsPerTurn) {
    leave(self, Leave::kTurn, next);
  } else if (next != self.rank) {
    hop(self, next_fiber(self, next));
  }
}

/// Self is parked at a barrier: somebody else goes on, and releases it one day.
void FiberBlock::parked(Fiber& self) {
  note_progress();
  ++steps_;
  if (sync.is_stuck()) {
    fail_stuck(*this);
    abandon(self);
  }
  const unsigned next = sync.next_after(self.rank);
  hop(self, next_fiber(self, next));
}

/// A barrier is complete and self goes on, unless others have waited long enough.
inline void FiberBlock::completed(Fiber& self) {
  note_progress();
  if (++steps_ < kStepsPerTurn) return;
  if (launch->has_failed()) abandon(self);
  leave(self, Leave::kTurn, self.rank);
}

void FiberBlock::sync_block(Fiber& self, bool predicate) {
  if (sync.arrive_block(self.rank, predicate)) return completed(self);
  parked(self);
}

void FiberBlock::sync_named(Fiber& self, unsigned id, unsigned threads) {
  if (sync.arrive_named(self.rank, id, threads)) return completed(self);
  parked(self);
}

void FiberBlock::sync_warp(Fiber& self, std::uint32_t mask) {
  if (sync.arrive_warp(self.rank, mask)) return completed(self);
  parked(self);
}

std::uint64_t FiberBlock::exchange(Fiber& self, std::uint32_t mask, BlockSync::Exchange kind,
                                   std::uint64_t value, unsigned source) {
  if (sync.arrive_warp(self.rank, mask, kind, value, source)) {
    completed(self);
  } else {
    parked(self);
  }
  return sync.exchanged(self.rank);
}

/// One thread after the other, as long as the next one to run has not started: a kernel that never
/// waits needs one stack.
void FiberBlock::thread_main(Fiber& self) {
  for (;;) {
    run_kernel(self);
    const unsigned rank = self.rank;
    self.note.clear();
    note_progress();
    sync.leave(rank);
    if (launch->has_failed()) abandon(self);
    if (sync.live() == 0) break;
    if (sync.is_stuck()) {
      fail_stuck(*this);
      abandon(self);
    }
    const unsigned next = sync.next_after(rank);
    if (next != started_) {
      hop(self, *fibers[next].load(std::memory_order_relaxed));
      std::abort();  // nobody jumps to a thread that has returned
    }
    fibers[rank].store(nullptr, std::memory_order_relaxed);
    identify(self, *this, next);
    fibers[next].store(&self, std::memory_order_relaxed);
    started_ = next + 1;
  }
  leave(self, Leave::kDone, 0);
  std::abort();
}

}  // namespace gimlet::device
