// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_GROUP_H
#define GIMLET_PGAS_GROUP_H

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/memory_kind.h"
#include "device/status.h"

namespace gimlet::pgas {

/// An ordered set of ranks that can agree on things and share memory: what a communicator is made
/// over.
///
/// All calls but abort() and dead_rank() are collective over the group, in the same order on every
/// rank, from one thread of each rank at a time. They are bounded: a dead member ends them with an
/// error on the others.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Number in SHMEM_TEAM_WORLD, for messages; equals the rank for groups of threads.
  virtual int world_pe(int rank) const = 0;
  /// True when map_peers can map memory of that rank here. Otherwise `why_not` holds the reason.
  virtual bool is_mappable(int rank, std::string* why_not = nullptr) const = 0;

  virtual Status barrier() = 0;
  /// Each rank gives mine.size() bytes, the same number everywhere; all.size() is size() times
  /// that.
  virtual Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Each rank offers one piece of memory (null: none). peers[r] is the base of rank r's piece
  /// here, null where r is not mappable or offered none; sizes may differ. Unmapped with the
  /// handle.
  struct PeerMemory {
    std::vector<std::byte*> base;
    std::vector<std::size_t> size;
    std::vector<std::unique_ptr<device::Memory>> imported;
  };
  virtual Status map_peers(const device::Memory* mine, PeerMemory& peers) = 0;

  /// What carries requests to members whose memory is not mapped here; started by the first call.
  /// Null with a reason: there is none.
  virtual class Carrier* carrier(Status& why_not) = 0;

  /// A member that is known to be dead, or -1. Safe from any thread.
  virtual int dead_rank() const = 0;
  /// Ends the whole job with a sentence. Safe from any thread.
  [[noreturn]] virtual void abort(int status, const std::string& why) = 0;
};

/// `ranks` members that are threads of this process: memory is shared anyway. Element r is rank r's
/// handle; each is used by its own thread.
std::vector<std::unique_ptr<Group>> make_local_groups(int ranks);

/// The memory behind an address of this PE's symmetric heap, null for any other address.
const device::Memory* find_heap_memory(const void* address);

/// All PEs of SHMEM_TEAM_WORLD; shmem_init has been called. Collective.
Status make_world_group(std::unique_ptr<Group>& out);

}  // namespace gimlet::pgas

#endif
