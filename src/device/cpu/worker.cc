// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/worker.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>

#include "device/clock.h"
#include "device/cpu/executor.h"
#include "device/cpu/stack_fault.h"

namespace gimlet::device {
namespace {

constexpr unsigned kYieldRounds = 8;
constexpr std::uint64_t kYieldNs = 100'000;
constexpr std::uint64_t kShortestSleepNs = 20'000;
constexpr std::uint64_t kLongestSleepNs = 2'000'000;
constexpr std::uint64_t kLongestRoundNs = 5'000'000;
constexpr unsigned long kTimerSlackNs = 1'000;

}  // namespace

void Worker::start() {
  thread_ = std::thread([this] { run(); });
}

void Worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

bool Worker::join(std::uint64_t until_ns) {
  {
    std::unique_lock lock(mutex_);
    const auto left = std::chrono::nanoseconds(until_ns - std::min(now_ns(), until_ns));
    if (!changed_.wait_for(lock, left, [this] { return ended_; })) {
      thread_.detach();
      return false;
    }
  }
  thread_.join();
  return true;
}

void Worker::wake() {
  {
    const std::lock_guard lock(mutex_);
    ++wakeups_;
  }
  changed_.notify_all();
}

void Worker::adopt(const std::vector<FiberBlock*>& blocks) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(), blocks.begin(), blocks.end());
    ++wakeups_;
  }
  changed_.notify_all();
}

void Worker::activate() {
  {
    const std::lock_guard lock(mutex_);
    active_ = true;
    ++wakeups_;
  }
  changed_.notify_all();
}

std::vector<FiberBlock*> Worker::give_up(bool half) {
  const std::lock_guard lock(mutex_);
  std::size_t count = waiting_.size();
  if (half) count = current_ != nullptr ? (count + 1) / 2 : count / 2;
  std::vector<FiberBlock*> blocks(waiting_.end() - static_cast<std::ptrdiff_t>(count),
                                  waiting_.end());
  waiting_.resize(waiting_.size() - count);
  return blocks;
}

bool Worker::is_idle() {
  const std::lock_guard lock(mutex_);
  return current_ == nullptr && waiting_.empty() && !active_;
}

bool Worker::has_waiting() {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

bool Worker::is_running_block() {
  const std::lock_guard lock(mutex_);
  return current_ != nullptr;
}

std::size_t Worker::load() {
  const std::lock_guard lock(mutex_);
  return waiting_.size() + (current_ != nullptr ? 1 : 0);
}

void Worker::visit(const std::function<void(FiberBlock&)>& see) {
  const std::lock_guard lock(mutex_);
  if (current_ != nullptr) see(*current_);
  for (FiberBlock* const block : waiting_) see(*block);
}

void Worker::visit_current(const std::function<void(DeviceThread&)>& see) {
  const std::lock_guard lock(mutex_);
  if (current_ == nullptr) return;
  if (DeviceThread* const thread = slot_->load(std::memory_order_relaxed)) see(*thread);
}

void Worker::learn_own_stack() {
#if GIMLET_ASAN
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
    void* bottom = nullptr;
    ::pthread_attr_getstack(&attributes, &bottom, &stack_.bytes);
    stack_.bottom = bottom;
    ::pthread_attr_destroy(&attributes);
  }
#endif
#if GIMLET_TSAN
  stack_.fiber = __tsan_get_current_fiber();
#endif
}

void Worker::run() {
  ::pthread_setname_np(::pthread_self(), "gin-worker");
  ::prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  const SignalStack for_handlers;
  learn_own_stack();
  slot_ = &current_slot;
  while (FiberBlock* const block = next()) settle(*block, block->enter(*this));
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

FiberBlock* Worker::next() {
  for (;;) {
    std::size_t waiting = 0;
    std::uint64_t wakeups = 0;
    bool may_start = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return nullptr;
      waiting = waiting_.size();
      wakeups = wakeups_;
      may_start = !reserve_ || active_;
    }
    if (may_start) {
      if (FiberBlock* const block = start_block(waiting)) return block;
    }
    if (waiting == 0) {
      if (!reserve_ && steal()) continue;
      sleep_until_work(wakeups);
    } else if (fruitless_ >= waiting) {
      rest();
      fruitless_ = 0;
    }
    if (FiberBlock* const block = resume_block()) return block;
  }
}

/// New blocks come first where this worker has less than its share or nothing else to do.
FiberBlock* Worker::start_block(std::size_t waiting) {
  if (!executor_.has_startable()) return nullptr;
  if (fruitless_ < waiting && waiting >= executor_.fair_share()) return nullptr;
  FiberBlock* const block = executor_.start_block();
  if (block == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  current_ = block;
  return block;
}

FiberBlock* Worker::resume_block() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty() || stopping_) return nullptr;
  current_ = waiting_.front();
  waiting_.pop_front();
  return current_;
}

void Worker::settle(FiberBlock& block, Leave reason) {
  slot_->store(nullptr, std::memory_order_relaxed);
  const bool over = reason == Leave::kDone || reason == Leave::kFailed;
  if (reason == Leave::kWaiting && !block.progressed) {
    ++fruitless_;
  } else {
    fruitless_ = 0;
    rounds_ = 0;
  }
  {
    const std::lock_guard lock(mutex_);
    current_ = nullptr;
    if (!over) waiting_.push_back(&block);
  }
  if (over) executor_.block_ended(block);
}

/// All blocks looked and nothing moved: other processes and threads get the core, and after a while
/// this one sleeps, never longer than a quarter of the time it has waited already.
void Worker::rest() {
  const std::uint64_t now = now_ns();
  if (rounds_++ == 0) idle_since_ns_ = now;
  const std::uint64_t waited = now - idle_since_ns_;
  if (rounds_ <= kYieldRounds || waited < kYieldNs) {
    ::sched_yield();
    round_started_ns_ = now_ns();
    return;
  }
  // A round over thousands of threads takes long itself: it must not eat the core either.
  const std::uint64_t round = std::min(now - round_started_ns_, kLongestRoundNs);
  const std::uint64_t nap =
      std::max(std::clamp(waited / 4, kShortestSleepNs, kLongestSleepNs), 2 * round);
  executor_.begin_sleep();
  {
    std::unique_lock lock(mutex_);
    const std::uint64_t seen = wakeups_;
    changed_.wait_for(lock, std::chrono::nanoseconds(nap),
                      [&] { return wakeups_ != seen || stopping_; });
  }
  executor_.end_sleep();
  round_started_ns_ = now_ns();
}

void Worker::sleep_until_work(std::uint64_t seen_wakeups) {
  fruitless_ = 0;
  rounds_ = 0;
  std::unique_lock lock(mutex_);
  active_ = false;
  changed_.wait(lock, [&] { return wakeups_ != seen_wakeups || stopping_ || !waiting_.empty(); });
}

bool Worker::steal() {
  const std::vector<FiberBlock*> blocks = executor_.blocks_to_steal(*this);
  if (blocks.empty()) return false;
  const std::lock_guard lock(mutex_);
  waiting_.insert(waiting_.end(), blocks.begin(), blocks.end());
  return true;
}

}  // namespace gimlet::device
