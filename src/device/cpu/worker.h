// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_WORKER_H
#define GIMLET_DEVICE_CPU_WORKER_H

#include <pthread.h>

#include <boost/context/detail/fcontext.hpp>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "device/cpu/device_thread.h"
#include "device/cpu/fiber_block.h"
#include "device/cpu/sanitizer.h"

namespace gimlet::device {

class Executor;

/// A system thread that runs blocks, one at a time. Blocks that wait stand in its queue; a round
/// over all of them that shows no progress starts further blocks of the grid, else gives the core
/// away, and in the end sleeps for a while.
class Worker {
 public:
  using Context = boost::context::detail::fcontext_t;

  /// A reserve worker takes nothing by itself: the monitor gives it blocks, or lets it start some,
  /// when another one is held up.
  Worker(Executor& executor, bool reserve) : executor_(executor), reserve_(reserve) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start();
  /// Asks it to end: it does so the next time it is between two blocks.
  void stop();
  /// Waits up to `until_ns`; false: it still runs, and is left alone for ever.
  bool join(std::uint64_t until_ns);

  /// There may be something new: work, or a change of what blocks wait for.
  void wake();
  /// Takes suspended blocks over.
  void adopt(const std::vector<FiberBlock*>& blocks);
  /// For a reserve worker: it may start blocks until it runs out of work.
  void activate();
  /// Takes all suspended blocks away, or half of them when `half` and this worker can spare them.
  std::vector<FiberBlock*> give_up(bool half);

  bool is_reserve() const { return reserve_; }
  /// No block, running or suspended.
  bool is_idle();
  bool has_waiting();
  std::size_t load();
  /// Calls `see` for each of its blocks, suspended or running; they stay while it does so.
  void visit(const std::function<void(FiberBlock&)>& see);
  /// Calls `see` with the device thread that holds the worker now, if any.
  void visit_current(const std::function<void(DeviceThread&)>& see);
  pthread_t system_thread() { return thread_.native_handle(); }
  /// Changes with every hand-over.
  std::uint64_t ticks() const { return ticks_.load(std::memory_order_relaxed); }
  bool is_running_block();

  // For the block that runs here.
  void run_next(DeviceThread& thread) {
    slot_->store(&thread, std::memory_order_relaxed);
    ticks_.store(ticks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void set_context(Context context) { context_ = context; }
  Context context() const { return context_; }
  SanitizedStack& stack() { return stack_; }

 private:
  void run();
  void learn_own_stack();
  FiberBlock* next();
  FiberBlock* start_block(std::size_t waiting);
  FiberBlock* resume_block();
  void settle(FiberBlock& block, Leave reason);
  void rest();
  void sleep_until_work(std::uint64_t seen_wakeups);
  bool steal();

  Executor& executor_;
  const bool reserve_;
  std::thread thread_;

  // Used by this worker's system thread alone.
  Context context_ = nullptr;
  SanitizedStack stack_;
  std::size_t fruitless_ = 0;  // blocks in a row that came back without progress
  unsigned rounds_ = 0;        // rounds over all blocks without progress
  std::uint64_t idle_since_ns_ = 0;
  std::uint64_t round_started_ns_ = 0;

  std::atomic<DeviceThread*>* slot_ = nullptr;
  std::atomic<std::uint64_t> ticks_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<FiberBlock*> waiting_;
  FiberBlock* current_ = nullptr;
  std::uint64_t wakeups_ = 0;
  bool active_ = false;  // a reserve worker that may start blocks
  bool stopping_ = false;
  bool ended_ = false;
};

}  // namespace gimlet::device

#endif
