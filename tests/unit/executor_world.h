// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_UNIT_EXECUTOR_WORLD_H
#define GIMLET_TESTS_UNIT_EXECUTOR_WORLD_H

#include <gin/launch.h>

#include <cstdlib>

#include "device/cpu/sanitizer.h"

namespace testing {

/// How the executor of this process runs; chosen before its first launch. Each test is a process of
/// its own.
struct Mode {
  const char* executor;
  const char* workers;
};

constexpr Mode kModes[] = {{"fibers", "1"}, {"fibers", "2"}, {"fibers", "5"}, {"threads", "1"}};
constexpr int kAllModes = 4;
constexpr int kFiberModes = 3;

/// Seconds that one test may take; the thread sanitizer is slow.
constexpr double kPatience = GIMLET_TSAN != 0 ? 120 : 20;

inline void choose(int mode) {
  ::setenv("GIN_EXECUTOR", kModes[mode].executor, 1);
  ::setenv("GIN_EXECUTOR_WORKERS", kModes[mode].workers, 1);
}

inline bool has_fibers(int mode) {
  return mode < kFiberModes;
}

/// False: at most 256 of them. The thread sanitizer follows more fibers, but takes minutes.
inline bool has_many_threads(int mode) {
  return GIMLET_TSAN == 0 && has_fibers(mode);
}

/// Queues on the default stream and waits: the first result that is not success.
template <class Kernel, class... Args>
ginResult_t run(Kernel kernel, const gin::LaunchConfig& config, Args... args) {
  const ginResult_t queued = gin::launch(kernel, config, args...);
  return queued != ginSuccess ? queued : gin::streamSynchronize(nullptr);
}

}  // namespace testing

#endif
