// SPDX-License-Identifier: BSD-3-Clause
#include "device/cores.h"

#include <algorithm>
#include <atomic>

namespace gimlet::device {
namespace {

std::atomic<int> sharers{1};
[[maybe_unused]] const int cores_when_loaded = allowed_cores();

}  // namespace

void set_local_pes(int pes) {
  sharers.store(std::max(1, pes), std::memory_order_relaxed);
}
int local_pes() {
  return sharers.load(std::memory_order_relaxed);
}

const cpu_set_t& allowed_cpus() {
  static const cpu_set_t cpus = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  return cpus;
}

int allowed_cores() {
  return std::max(1, CPU_COUNT(&allowed_cpus()));
}

}  // namespace gimlet::device
