// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_LAUNCH_H
#define GIMLET_DEVICE_CPU_LAUNCH_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "gin/impl/exec.h"

namespace gimlet::device {

class ThreadRun;
struct Launch;

inline std::string text(const gin_exec_dim& d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

/// Launches that run one after the other. Everything in it is guarded by the executor's mutex.
struct Stream {
  explicit Stream(int number) : device(number) {}

  const int device;
  std::deque<Launch*> queue;  // the first one is running
  int error = 0;              // the first since the last synchronisation
  bool destroyed = false;     // goes away with its last launch
};

/// One kernel launch, from the queue to its last thread.
struct Launch {
  Launch(const gin_exec_launch_config& launch_config, const gin_exec_kernel& launch_kernel);
  ~Launch() { destroy_args(); }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  std::uint64_t blocks() const {
    return std::uint64_t{config.grid.x} * config.grid.y * config.grid.z;
  }
  unsigned threads() const { return config.block.x * config.block.y * config.block.z; }
  gin_exec_dim block_index(std::uint64_t number) const;
  std::string_view name() const { return kernel_name; }

  /// Ends the launch with an error: the first one is reported (unless the sentence is empty) and
  /// kept, its blocks are dropped by whoever meets them next.
  void fail(int error, std::string_view sentence);
  bool has_failed() const { return failed.load(std::memory_order_relaxed); }
  void destroy_args();

  const gin_exec_launch_config config;
  gin_exec_kernel kernel;
  const std::string kernel_name;
  Stream* stream = nullptr;
  std::atomic<bool> failed{false};
  std::atomic<int> result{0};
  std::atomic<bool> hold_reported{false};
  ThreadRun* thread_run = nullptr;  // only where every device thread is a system thread

  // Guarded by the executor's mutex.
  std::uint64_t next_block = 0;
  std::uint64_t resident_blocks = 0;
};

}  // namespace gimlet::device

#endif
