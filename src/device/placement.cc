// SPDX-License-Identifier: BSD-3-Clause
#include "device/placement.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <pthread.h>
#include <stdlib.h>

#include <memory>

#include "device/cores.h"

namespace gimlet::device {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

struct FreeTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, FreeTopology>;

/// Nothing but cpus and NUMA nodes: 2 ms instead of some tens. Null: hwloc knows nothing.
Topology load_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  Topology made(topology);
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  return hwloc_topology_load(topology) == 0 ? std::move(made) : nullptr;
}

Bitmap bitmap_of(hwloc_topology_t topology, const cpu_set_t& cpus) {
  Bitmap bitmap(hwloc_bitmap_alloc());
  hwloc_cpuset_from_glibc_sched_affinity(topology, bitmap.get(), &cpus, sizeof cpus);
  return bitmap;
}

/// Leaves the cpus of one node over.
void narrow_to_node(hwloc_topology_t topology, unsigned cpu, Placement& placement) {
  const Bitmap allowed = bitmap_of(topology, placement.cpus);
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (hwloc_bitmap_isset(node->cpuset, cpu) == 0) continue;
    hwloc_bitmap_and(allowed.get(), allowed.get(), node->cpuset);
    if (hwloc_bitmap_iszero(allowed.get()) != 0) return;
    placement.node = static_cast<int>(node->os_index);
    hwloc_cpuset_to_glibc_sched_affinity(topology, allowed.get(), &placement.cpus,
                                         sizeof placement.cpus);
    return;
  }
}

}  // namespace

Placement place_nearby() {
  Placement placement{allowed_cpus()};
  unsigned cpu = 0;
  if (CPU_COUNT(&placement.cpus) < 2 || ::getcpu(&cpu, nullptr) != 0) return placement;
  static const Topology topology = load_topology();
  if (topology != nullptr) narrow_to_node(topology.get(), cpu, placement);
  return placement;
}

void go_to(const Placement& placement) {
  ::pthread_setaffinity_np(::pthread_self(), sizeof placement.cpus, &placement.cpus);
}

std::string describe(const Placement& placement) {
  const Bitmap cpus(hwloc_bitmap_alloc());
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &placement.cpus)) hwloc_bitmap_set(cpus.get(), static_cast<unsigned>(cpu));
  }
  char* list = nullptr;
  if (hwloc_bitmap_list_asprintf(&list, cpus.get()) < 0) return "unknown cpus";
  const std::unique_ptr<char, void (*)(void*)> owned(list, ::free);
  const char* plural = CPU_COUNT(&placement.cpus) == 1 ? "" : "s";
  if (placement.node < 0) return fmt::format("cpu{} {}", plural, list);
  return fmt::format("cpu{} {} of NUMA node {}", plural, list, placement.node);
}

}  // namespace gimlet::device
