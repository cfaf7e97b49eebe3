// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_RESOURCE_LAYOUT_H
#define GIMLET_GIN_RESOURCE_LAYOUT_H

#include <cstdint>
#include <vector>

#include "device/status.h"
#include "gin/comm.h"

namespace gimlet::gin {

/// Where everything lies in the resource memory of a device communicator, the same on every rank:
///
///   error word | signals [context][signal] | shadows | counters [context][counter]
///              | slots of peers | resource buffers
///
/// The signals of a context start on a cache line of their own. Of each context the program's
/// signals come first, from index 0, then those of the barriers, then those of the requirement
/// list; every group but the first starts on a cache line.
struct ResourceLayout {
  bool uses_gin = false;
  bool strong_legacy = true;
  std::uint32_t contexts = 0;
  std::uint32_t signals = 0;  // of each context
  std::uint32_t counters = 0;
  ginBarrierHandle_t world_barrier{};
  ginBarrierHandle_t rail_barrier{};
  std::uint32_t world_barriers = 0;
  std::uint32_t rail_barriers = 0;
  ginConnectionType_t connection = GIN_CONNECTION_NONE;

  std::uint64_t signals_offset = 0;
  std::uint64_t shadows_offset = 0;
  std::uint64_t counters_offset = 0;
  std::uint64_t slots_offset = 0;
  std::uint64_t signals_pitch = 0;  // bytes from context to context
  std::uint64_t counters_pitch = 0;
  std::uint64_t bytes = 0;

  /// What goes to the out pointers of a requirement list's entry.
  struct Grant {
    ginDevResourceRequirements_t* entry;
    std::uint64_t buffer_offset;
    std::uint32_t first_signal;
    std::uint32_t first_counter;
  };
  std::vector<Grant> grants;
};

/// Checks the requirements and lays them out for a communicator of `ranks` ranks in teams of
/// `lsa_size`.
Status make_layout(const ginDevCommRequirements_t* requirements, int ranks, int lsa_size,
                   ResourceLayout& layout);

}  // namespace gimlet::gin

#endif
