// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_MONITOR_H
#define GIMLET_DEVICE_CPU_MONITOR_H

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gimlet::device {

class Executor;
class Worker;
struct DeviceThread;
struct Block;

/// Watches the workers while kernels run, and sleeps when none does: lets other blocks run beside a
/// thread that never hands over, and says who waits for what, and for how long.
class Monitor {
 public:
  explicit Monitor(Executor& executor) : executor_(executor) {}

  void start();
  void stop();
  /// A launch has begun.
  void wake();

 private:
  struct Watch {
    std::uint64_t ticks = 0;
    std::uint64_t since_ns = 0;  // ticks have stood still since; 0: nothing runs
  };

  void run();
  void watch_workers(std::uint64_t now);
  std::uint64_t held_ns(Worker& worker, std::uint64_t now);
  void report_hold(Worker& worker);
  void report_waits(std::uint64_t now);

  Executor& executor_;
  std::thread thread_;
  std::map<Worker*, Watch> watches_;
  std::uint64_t waits_checked_ns_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false;
  bool stopping_ = false;
};

}  // namespace gimlet::device

#endif
