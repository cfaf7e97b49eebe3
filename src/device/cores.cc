// SPDX-License-Identifier: BSD-3-Clause
#include "device/cores.h"

#include <sched.h>

#include <algorithm>
#include <atomic>

namespace gimlet::device {
namespace {

std::atomic<int> sharers{1};

}  // namespace

void set_local_pes(int pes) {
  sharers.store(std::max(1, pes), std::memory_order_relaxed);
}
int local_pes() {
  return sharers.load(std::memory_order_relaxed);
}

int allowed_cores() {
  static const int cores = [] {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return std::max(1, CPU_COUNT(&set));
  }();
  return cores;
}

}  // namespace gimlet::device
