// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/thread_run.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "device/cpu/sanitizer.h"
#include "device/status.h"
#include "gin/result.h"

namespace gimlet::device {
namespace {

constexpr std::size_t kStackBytes = 1024 * 1024;
constexpr std::uint32_t kYieldSteps = 256;
constexpr long kShortestSleepNs = 50'000;
constexpr long kLongestSleepNs = 1'000'000;

void* thread_entry(void* self) {
  auto& thread = *static_cast<SystemThread*>(self);
  current_slot.store(&thread, std::memory_order_relaxed);
  thread.owner().thread_main(thread);
  current_slot.store(nullptr, std::memory_order_relaxed);
  return nullptr;
}

/// True once the kernel has returned or was abandoned. A function of its own, because variables of
/// the caller of setjmp are not reliable after the second return.
void run_until_end(SystemThread& self) {
  if (setjmp(self.end) == 0) run_kernel(self);
}

}  // namespace

ThreadBlock::ThreadBlock(Launch& new_launch, std::uint64_t number) : threads(new_launch.threads()) {
  launch = &new_launch;
  index = new_launch.block_index(number);
  sync.reset(new_launch.threads());
  unsigned rank = 0;
  for (SystemThread& thread : threads) identify(thread, *this, rank++);
}

void ThreadBlock::thread_main(SystemThread& self) {
  run_until_end(self);
  self.note.clear();
  bool stuck = false;
  {
    const UnseenByTsan quiet;
    const std::lock_guard lock(mutex_);
    sync.leave(self.rank);
    stuck = sync.is_stuck();
  }
  released_.notify_all();
  if (stuck && !launch->has_failed()) fail_stuck(*this);
}

void ThreadBlock::wake_all() {
  {
    const UnseenByTsan quiet;
    const std::lock_guard lock(mutex_);
  }
  released_.notify_all();
}

void ThreadBlock::abandon(SystemThread& self) {
  std::longjmp(self.end, 1);
}

void ThreadBlock::wait_step(SystemThread& self, bool moved) {
  if (launch->has_failed()) abandon(self);
  self.fruitless = moved ? 0 : self.fruitless + 1;
  if (self.fruitless < kYieldSteps) {
    ::sched_yield();
    return;
  }
  const long steps = static_cast<long>(self.fruitless - kYieldSteps) / 16 + 1;
  const timespec nap{0, std::min(steps * kShortestSleepNs, kLongestSleepNs)};
  ::nanosleep(&nap, nullptr);
}

/// False: the launch has failed and the barrier never completes.
template <class Arrive>
bool ThreadBlock::meet_quietly(SystemThread& self, Arrive arrive) {
  const UnseenByTsan quiet;
  std::unique_lock lock(mutex_);
  if (arrive()) {
    lock.unlock();
    released_.notify_all();
    return true;
  }
  if (sync.is_stuck() && !launch->has_failed()) {
    lock.unlock();
    fail_stuck(*this);
    return false;
  }
  released_.wait(lock, [&] { return sync.is_runnable(self.rank) || launch->has_failed(); });
  return sync.is_runnable(self.rank);
}

template <class Arrive>
void ThreadBlock::meet(SystemThread& self, void* place, Arrive arrive) {
  tsan_release(place);
  if (!meet_quietly(self, arrive) || launch->has_failed()) abandon(self);
  tsan_acquire(place);
}

void* ThreadBlock::block_place() {
  const UnseenByTsan quiet;
  // No lock: the number changes only once the caller has arrived as well.
  return &block_places_[sync.block_barriers() % 2];
}

void ThreadBlock::sync_block(SystemThread& self, bool predicate) {
  meet(self, block_place(), [&] { return sync.arrive_block(self.rank, predicate); });
}

void ThreadBlock::sync_named(SystemThread& self, unsigned id, unsigned count) {
  meet(self, &named_places_[id], [&] { return sync.arrive_named(self.rank, id, count); });
}

void ThreadBlock::sync_warp(SystemThread& self, std::uint32_t mask) {
  meet(self, &warp_places_[self.rank / kWarpSize],
       [&] { return sync.arrive_warp(self.rank, mask); });
}

std::uint64_t ThreadBlock::exchange(SystemThread& self, std::uint32_t mask,
                                    BlockSync::Exchange kind, std::uint64_t value,
                                    unsigned source) {
  const unsigned rank = self.rank;
  meet(self, &warp_places_[rank / kWarpSize],
       [&] { return sync.arrive_warp(rank, mask, kind, value, source); });
  const UnseenByTsan quiet;
  const std::lock_guard lock(mutex_);
  return sync.exchanged(rank);
}

int ThreadBlock::counted() {
  const UnseenByTsan quiet;
  const std::lock_guard lock(mutex_);
  return sync.counted();
}

bool ThreadBlock::named_conflict(unsigned id, unsigned count) {
  const UnseenByTsan quiet;
  const std::lock_guard lock(mutex_);
  return sync.named_threads(id) != 0 && sync.named_threads(id) != count;
}

void* ThreadBlock::shared_object(const void* site, std::size_t bytes, std::size_t align) {
  const UnseenByTsan quiet;
  const std::lock_guard lock(mutex_);
  return shared.object(site, bytes, align);
}

ThreadRun::ThreadRun(Launch& launch) : launch_(launch) {
  for (std::uint64_t number = 0; number < launch.blocks(); ++number) {
    blocks_.push_back(std::make_unique<ThreadBlock>(launch, number));
    if (!blocks_.back()->shared.reset(launch.config.shared_bytes)) {
      launch.fail(ginSystemError,
                  fmt::format("no memory for the shared memory of kernel {}", launch.name()));
    }
  }
}

void ThreadRun::run() {
  std::vector<pthread_t> started;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  for (const auto& block : blocks_) {
    for (SystemThread& thread : block->threads) {
      if (launch_.has_failed()) break;
      pthread_t handle;
      if (const int error = ::pthread_create(&handle, &attributes, thread_entry, &thread)) {
        launch_.fail(ginSystemError,
                     fmt::format("kernel {} needs {} system threads, the system refuses number {}: "
                                 "{}",
                                 launch_.name(), launch_.blocks() * launch_.threads(),
                                 started.size() + 1, ::strerrordesc_np(error)));
      } else {
        started.push_back(handle);
      }
    }
  }
  ::pthread_attr_destroy(&attributes);
  for (const pthread_t handle : started) ::pthread_join(handle, nullptr);
}

void ThreadRun::wake_all() {
  for (const auto& block : blocks_) block->wake_all();
}

void ThreadRun::visit(const std::function<void(ThreadBlock&)>& see) {
  for (const auto& block : blocks_) see(*block);
}

}  // namespace gimlet::device
