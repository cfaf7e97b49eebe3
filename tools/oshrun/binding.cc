// SPDX-License-Identifier: BSD-3-Clause
#include "binding.h"

#include <hwloc.h>
#include <stdlib.h>

#include <memory>

#include "launch_error.h"

namespace gimlet::oshrun {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

std::string list_of(hwloc_const_bitmap_t cpus) {
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, cpus) < 0) return "?";
  std::string list = text;
  free(text);
  return list;
}

// The cpus this process may run on, as inherited from whoever started it.
Bitmap allowed_cpus(hwloc_topology_t topology) {
  Bitmap cpus(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology, cpus.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    hwloc_bitmap_copy(cpus.get(), hwloc_topology_get_allowed_cpuset(topology));
  }
  return cpus;
}

// A core or NUMA domain and those of its cpus that are allowed.
struct Domain {
  unsigned number;
  Bitmap cpus;
};

std::vector<Domain> allowed_domains(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const Bitmap allowed = allowed_cpus(topology);
  std::vector<Domain> domains;
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
    Bitmap cpus(hwloc_bitmap_alloc());
    hwloc_bitmap_and(cpus.get(), object->cpuset, allowed.get());
    if (!hwloc_bitmap_iszero(cpus.get())) {
      domains.push_back({object->logical_index, std::move(cpus)});
    }
  }
  return domains;
}

// Cores, or single cpus on a machine that does not say what its cores are.
std::vector<Domain> cores_of(hwloc_topology_t topology) {
  std::vector<Domain> cores = allowed_domains(topology, HWLOC_OBJ_CORE);
  return cores.empty() ? allowed_domains(topology, HWLOC_OBJ_PU) : std::move(cores);
}

std::vector<unsigned long> mask_of(hwloc_const_bitmap_t cpus) {
  std::vector<unsigned long> mask;
  const int words = hwloc_bitmap_nr_ulongs(cpus);
  mask.resize(static_cast<std::size_t>(words));
  hwloc_bitmap_to_ulongs(cpus, static_cast<unsigned>(words), mask.data());
  return mask;
}

Placement bound_to(const char* kind, const Domain& domain) {
  return {mask_of(domain.cpus.get()),
          fmt::format("bound to {} {} (cpus {})", kind, domain.number, list_of(domain.cpus.get()))};
}

}  // namespace

Topology::Topology() {
  // Plugins add devices (some by opening a display), which are left out below: skipping them
  // spares most of the time that a load takes.
  const bool is_set = getenv("HWLOC_PLUGINS_PATH") != nullptr;
  if (!is_set) setenv("HWLOC_PLUGINS_PATH", "/dev/null", 1);
  const bool has_started = hwloc_topology_init(&topology_) == 0;
  if (!is_set) unsetenv("HWLOC_PLUGINS_PATH");
  if (!has_started) fail(kExitLauncher, "hwloc cannot start");
  // Cores, cpus and NUMA domains are all that is looked at: leaving the rest out makes start-up
  // faster, and the x86 back end would visit every cpu to ask it for what the kernel told already.
  hwloc_topology_set_all_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_components(topology_, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  if (hwloc_topology_load(topology_) != 0) {
    fail(kExitLauncher, "hwloc cannot read the topology of this host: {}", errno_text());
  }
}

Topology::~Topology() {
  hwloc_topology_destroy(topology_);
}

int Topology::allowed_cores() const {
  return static_cast<int>(cores_of(topology_).size());
}

std::vector<Placement> Topology::place(BindPolicy policy, int pes) const {
  const std::vector<Domain> cores = cores_of(topology_);
  const auto count = static_cast<std::size_t>(pes);
  if (policy == BindPolicy::kDefault) {
    policy = count <= cores.size() ? BindPolicy::kCore : BindPolicy::kNone;
  }
  std::vector<Placement> placements;
  if (policy == BindPolicy::kNone) {
    const std::string text =
        fmt::format("not bound (cpus {})", list_of(allowed_cpus(topology_).get()));
    placements.assign(count, {{}, text});
    return placements;
  }
  if (policy == BindPolicy::kCore) {
    if (count > cores.size()) {
      fail(kExitUsage,
           "cannot bind {} PEs to {} allowed cores; use --bind-to numa or none, or -n {} or less",
           pes, cores.size(), cores.size());
    }
    for (std::size_t pe = 0; pe < count; ++pe) placements.push_back(bound_to("core", cores[pe]));
    return placements;
  }
  const std::vector<Domain> domains = allowed_domains(topology_, HWLOC_OBJ_NUMANODE);
  if (domains.empty()) fail(kExitUsage, "--bind-to numa: this host has no NUMA domain allowed");
  for (std::size_t pe = 0; pe < count; ++pe) {
    placements.push_back(bound_to("numa", domains[pe * domains.size() / count]));
  }
  return placements;
}

}  // namespace gimlet::oshrun
