// SPDX-License-Identifier: BSD-3-Clause
#include "device/backoff.h"

#include <immintrin.h>
#include <sched.h>
#include <time.h>

#include <atomic>

#include "device/clock.h"

namespace gimlet::device {
namespace {

constexpr std::uint32_t kPausedLooks = 2000;
constexpr std::uint32_t kClockEvery = 64;
constexpr std::uint64_t kSleepAfterNs = 20'000'000;
constexpr long kSleepNs = 50'000;

std::atomic<bool> oversubscribed{false};
std::atomic<FiberYield> fiber_yield{nullptr};

}  // namespace

void set_oversubscribed(bool on) {
  oversubscribed.store(on, std::memory_order_relaxed);
}
void set_fiber_yield(FiberYield hook) {
  fiber_yield.store(hook, std::memory_order_release);
}

void Backoff::step() {
  ++looks_;
  // Acquire pairs with set_fiber_yield: the executor's state is complete before its hook is seen.
  if (const FiberYield hook = fiber_yield.load(std::memory_order_acquire);
      hook != nullptr && hook(looks_ == 1)) {
    if (looks_ % kClockEvery == 0) {
      const std::uint64_t now = now_ns();
      if (started_ns_ == 0) started_ns_ = now;
      waited_ns_ = now - started_ns_;
    }
    return;
  }
  if (looks_ < kPausedLooks && !oversubscribed.load(std::memory_order_relaxed)) {
    _mm_pause();
    return;
  }
  if (looks_ % kClockEvery == 0) {
    const std::uint64_t now = now_ns();
    if (started_ns_ == 0) started_ns_ = now;
    waited_ns_ = now - started_ns_;
  }
  if (waited_ns_ < kSleepAfterNs) {
    ::sched_yield();
    return;
  }
  looks_ |= kClockEvery - 1;  // a sleep is long: look at the clock at the next step
  const timespec nap{0, kSleepNs};
  ::nanosleep(&nap, nullptr);
}

}  // namespace gimlet::device
