// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_FIBER_BLOCK_H
#define GIMLET_DEVICE_CPU_FIBER_BLOCK_H

#include <array>
#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/cpu/block.h"
#include "device/cpu/sanitizer.h"
#include "device/cpu/stack_pool.h"

namespace gimlet::device {

class Worker;
struct FiberBlock;

/// A device thread with a stack of its own, at whose top it lies itself: a switch then touches one
/// page.
struct alignas(64) Fiber : DeviceThread {
  SanitizedStack stack;
  const std::byte* low = nullptr;  // the lowest address of it

  FiberBlock& owner() const;
};

/// Why a block handed its worker back.
enum class Leave : std::uint8_t {
  kWaiting,  // every runnable thread looked once and saw nothing new
  kTurn,     // it could go on, but others want to run too
  kDone,     // all threads returned
  kFailed,   // the launch ended with an error
};

/// A resident block whose threads are fibers. One worker runs it at a time, so its members need no
/// lock; it changes workers only while it is suspended, through a queue that is locked.
struct FiberBlock : Block {
  FiberBlock(StackPool& pool, unsigned threads) : fibers(threads), pool_(pool) {}

  /// For block `number` of `new_launch`. False: no memory.
  [[nodiscard]] bool start(Launch& new_launch, std::uint64_t number);
  /// Runs on `runner`, from its own stack, until the block leaves.
  Leave enter(Worker& runner);
  /// Takes the stacks away, whether or not the threads have returned.
  void finish();

  // Called by a fiber of this block.
  void wait_step(Fiber& self, bool moved);
  void sync_block(Fiber& self, bool predicate);
  void sync_named(Fiber& self, unsigned id, unsigned threads);
  void sync_warp(Fiber& self, std::uint32_t mask);
  std::uint64_t exchange(Fiber& self, std::uint32_t mask, BlockSync::Exchange kind,
                         std::uint64_t value, unsigned source);
  void* shared_object(const void* site, std::size_t bytes, std::size_t align) {
    return shared.object(site, bytes, align);
  }
  int counted() const { return sync.counted(); }
  bool named_conflict(unsigned id, unsigned threads) const {
    return sync.named_threads(id) != 0 && sync.named_threads(id) != threads;
  }
  /// Suspends the block for good; self never runs again.
  [[noreturn]] void abandon(Fiber& self);

  /// Room for how many threads.
  unsigned capacity() const { return static_cast<unsigned>(fibers.size()); }

  Worker* worker = nullptr;
  bool progressed = false;  // since the worker entered
  /// Of the threads that have started; the monitor reads them while the block runs.
  std::vector<std::atomic<Fiber*>> fibers;

 private:
  friend void fiber_main(boost::context::detail::transfer_t);

  Fiber& next_fiber(Fiber& self, unsigned thread);
  Fiber* make_fiber(unsigned thread);
  void fetch_ahead(const Fiber& to) const;
  void hop(Fiber& from, Fiber& to);
  void parked(Fiber& self);
  void note_progress();
  void completed(Fiber& self);
  void leave(Fiber& self, Leave reason, unsigned resume_at);
  [[noreturn]] void thread_main(Fiber& self);
  void land(boost::context::detail::transfer_t from);

  StackPool& pool_;
  std::vector<std::byte*> stacks_;
  unsigned started_ = 0;  // threads below have a fiber; they start in order
  unsigned stacks_used_ = 0;
  unsigned resume_at_ = 0;
  unsigned fruitless_ = 0;  // wait steps in a row that saw nothing new
  unsigned steps_ = 0;      // hand-overs since the worker entered
  Leave leave_ = Leave::kDone;
};

inline FiberBlock& Fiber::owner() const {
  return *static_cast<FiberBlock*>(block);
}

}  // namespace gimlet::device

#endif
