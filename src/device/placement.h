// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_PLACEMENT_H
#define GIMLET_DEVICE_PLACEMENT_H

#include <sched.h>

#include <string>

namespace gimlet::device {

/// Where a thread runs that serves this process.
struct Placement {
  cpu_set_t cpus;
  int node = -1;  // NUMA node of all cpus; -1: not known
};

/// Near the calling thread: of the cpus that the process may use, those of the caller's NUMA node,
/// whichever of them the caller is bound to. What a thread touches first lies there too.
Placement place_nearby();

/// The calling thread moves there, if the system lets it.
void go_to(const Placement& placement);

/// "cpus 0-3,8 of NUMA node 0".
std::string describe(const Placement& placement);

}  // namespace gimlet::device

#endif
