// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_THREAD_RUN_H
#define GIMLET_DEVICE_CPU_THREAD_RUN_H

#include <condition_variable>
#include <csetjmp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "device/cpu/block.h"

namespace gimlet::device {

class Executor;
struct ThreadBlock;

/// A device thread that is a system thread.
struct SystemThread : DeviceThread {
  std::jmp_buf end;  // where a thread of a failed launch leaves the kernel

  ThreadBlock& owner() const;
};

/// A block of system threads, for the thread sanitizer and for kernels that spin within a block.
struct ThreadBlock : Block {
  ThreadBlock(Launch& launch, std::uint64_t number);

  void thread_main(SystemThread& self);
  /// The failed launch's waiting threads look up.
  void wake_all();

  // Called by a thread of this block.
  void wait_step(SystemThread& self, bool moved);
  void sync_block(SystemThread& self, bool predicate);
  void sync_named(SystemThread& self, unsigned id, unsigned threads);
  void sync_warp(SystemThread& self, std::uint32_t mask);
  std::uint64_t exchange(SystemThread& self, std::uint32_t mask, BlockSync::Exchange kind,
                         std::uint64_t value, unsigned source);
  void* shared_object(const void* site, std::size_t bytes, std::size_t align);
  int counted();
  bool named_conflict(unsigned id, unsigned count);
  /// Leaves the kernel for good, without unwinding.
  [[noreturn]] static void abandon(SystemThread& self);

  std::vector<SystemThread> threads;

 private:
  template <class Arrive>
  void meet(SystemThread& self, void* place, Arrive arrive);
  template <class Arrive>
  bool meet_quietly(SystemThread& self, Arrive arrive);
  void* block_place();

  // Guards sync and shared. The thread sanitizer does not see it: only the barriers order threads.
  std::mutex mutex_;
  std::condition_variable released_;
  // What the sanitizer knows the barriers by. Two for the block, used in turn, so that a thread
  // that is still leaving one barrier is not ordered behind arrivals at the next.
  char block_places_[2] = {};
  char named_places_[kNamedBarriers] = {};
  char warp_places_[kMaxWarps] = {};
};

inline ThreadBlock& SystemThread::owner() const {
  return *static_cast<ThreadBlock*>(block);
}

/// One launch in that mode: all its blocks at once.
class ThreadRun {
 public:
  explicit ThreadRun(Launch& launch);

  /// Starts all threads and returns when all have ended.
  void run();
  void wake_all();
  void visit(const std::function<void(ThreadBlock&)>& see);

 private:
  Launch& launch_;
  std::vector<std::unique_ptr<ThreadBlock>> blocks_;
};

}  // namespace gimlet::device

#endif
