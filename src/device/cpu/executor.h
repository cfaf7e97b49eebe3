// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_EXECUTOR_H
#define GIMLET_DEVICE_CPU_EXECUTOR_H

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "device/cpu/fiber_block.h"
#include "device/cpu/launch.h"
#include "device/cpu/monitor.h"
#include "device/cpu/stack_pool.h"
#include "device/cpu/thread_run.h"
#include "device/cpu/worker.h"
#include "device/status.h"

namespace gimlet::device {

/// Runs kernels on this process's cores. One a process, made by the first launch, ended at exit.
class Executor {
 public:
  /// Fibers of one launch that are resident at a time; more blocks start as earlier ones end. The
  /// sanitizers need two mappings a stack or know 8128 threads.
  static constexpr std::uint64_t kLaunchFibers =
      GIMLET_TSAN != 0 ? 4096 : (GIMLET_ASAN != 0 ? 8192 : 32768);
  static constexpr std::uint64_t kLaunchBlocks = 4096;
  /// Fibers of all launches.
  static constexpr std::uint64_t kAllFibers =
      GIMLET_TSAN != 0 ? 6144 : (GIMLET_ASAN != 0 ? 16384 : 131072);
  /// System threads of all launches, where each device thread is one.
  static constexpr unsigned kAllThreads = 256;

  /// Null in a process that was forked from the one that made it.
  static Executor* instance();
  /// Null as long as none was made.
  static Executor* existing();

  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  bool runs_fibers() const { return fibers_; }

  // Host side. A null stream is the default one of the calling thread.
  Status launch(const gin_exec_launch_config& config, const gin_exec_kernel& kernel);
  Stream* create_stream(int device);
  Status destroy_stream(Stream* stream);
  /// `error` is the first error of the stream's launches since the last call.
  Status synchronize(Stream* stream, int& error);
  void synchronize_device(int device, int& error);
  /// Sleeping workers look again.
  void wake_sleepers();

  // Worker side.
  /// Blocks that no worker has started yet.
  bool has_startable() const { return startable_.load(std::memory_order_relaxed) != 0; }
  /// How many blocks a worker may hold before it leaves new ones to the others.
  std::size_t fair_share() const;
  /// The next block of some launch, or nullptr: there is none, or no room.
  FiberBlock* start_block();
  void block_ended(FiberBlock& block);
  /// Suspended blocks of the busiest worker, for one that has none.
  std::vector<FiberBlock*> blocks_to_steal(const Worker& thief);
  void begin_sleep() { sleepers_.fetch_add(1, std::memory_order_seq_cst); }
  void end_sleep() { sleepers_.fetch_sub(1, std::memory_order_relaxed); }

  // Monitor side.
  std::vector<Worker*> workers();
  bool has_launches();
  /// Somebody else takes what `held` can't run, and what nobody can start.
  void relieve(Worker& held, bool nobody_is_free);
  void visit_thread_blocks(const std::function<void(ThreadBlock&)>& see);

 private:
  using Launches = std::vector<std::unique_ptr<Launch>>;

  Executor();

  void stop();
  Stream* resolve(Stream* stream);
  Status check(const gin_exec_launch_config& config, const char* name) const;
  void wake_workers();

  // With mutex_ held.
  bool has_room(const Launch& launch) const;
  FiberBlock& idle_block(unsigned threads);
  Worker* add_worker(bool reserve);
  void activate_front(Stream& stream, Launches& ended);
  bool activate(Launch& launch);
  void drop_unstarted(Launch& launch);
  void complete(Launch& launch, Launches& ended);

  void run_in_threads(Launch& launch);

  static constexpr std::size_t kBlockSizes = 6;  // 32, 64 ... 1024 threads

  const bool fibers_;
  const int pid_;
  StackPool stacks_;
  std::atomic<std::uint64_t> startable_{0};
  std::atomic<std::uint64_t> resident_{0};  // blocks
  std::atomic<int> sleepers_{0};
  std::size_t base_workers_ = 0;
  bool may_grow_ = true;  // used by the monitor alone: the system has not refused a thread

  std::mutex mutex_;
  std::condition_variable ended_;  // a launch ended, or threads became free
  // Guarded by mutex_.
  std::set<Stream*> streams_;
  std::deque<Launch*> active_;  // started and not complete; the first one starts the next block
  std::uint64_t resident_fibers_ = 0;
  unsigned threads_in_use_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<FiberBlock>> blocks_;
  std::array<std::vector<FiberBlock*>, kBlockSizes> idle_blocks_;
  bool stopping_ = false;

  Monitor monitor_;
};

}  // namespace gimlet::device

#endif
