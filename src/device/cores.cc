// SPDX-License-Identifier: BSD-3-Clause
#include "device/cores.h"

#include <sched.h>

#include <algorithm>

namespace gimlet::device {

int allowed_cores() {
  static const int cores = [] {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return std::max(1, CPU_COUNT(&set));
  }();
  return cores;
}

}  // namespace gimlet::device
