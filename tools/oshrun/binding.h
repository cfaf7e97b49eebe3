// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_BINDING_H
#define GIMLET_TOOLS_OSHRUN_BINDING_H

#include <string>
#include <vector>

#include "options.h"

struct hwloc_topology;

namespace gimlet::oshrun {

// Where one PE runs.
struct Placement {
  std::vector<unsigned long> cpu_mask;  // as for sched_setaffinity; empty: wherever it likes
  std::string text;                     // for --report-bindings
};

// The cores and NUMA domains that this process may use.
class Topology {
 public:
  Topology();
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  [[nodiscard]] int allowed_cores() const;
  [[nodiscard]] hwloc_topology* handle() const { return topology_; }

  // One placement a PE. core: each PE has a core of its own, else LaunchError. numa: the PEs are
  // spread over the domains in blocks.
  [[nodiscard]] std::vector<Placement> place(BindPolicy policy, int pes) const;

 private:
  hwloc_topology* topology_ = nullptr;
};

}  // namespace gimlet::oshrun

#endif
