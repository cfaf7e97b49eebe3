// SPDX-License-Identifier: BSD-3-Clause
// The C interface of <gin/comm.h>: arguments are checked here, the work is Communicator's.
//
// Everything else in the library is hidden; what these headers declare is its interface.
#pragma GCC visibility push(default)
#include "gin/comm.h"
#pragma GCC visibility pop

#include <memory>
#include <vector>

#include "gin/communicator.h"
#include "gin/impl/barrier_layout.h"
#include "gin/memory_table.h"
#include "gin/status_result.h"

namespace {

using gimlet::Code;
using gimlet::fail;
using gimlet::Status;
using gimlet::gin::Communicator;
using gimlet::gin::finish;

constexpr std::uint64_t kAlive = 0x67696e2d636f6d6d;
constexpr int kMostThreadRanks = 4096;

Status is_given(const void* argument, const char* name) {
  if (argument != nullptr) return {};
  return fail(Code::kInvalidArgument, "{} is null", name);
}

}  // namespace

struct ginComm {
  explicit ginComm(std::unique_ptr<Communicator> made) : communicator(std::move(made)) {}
  std::uint64_t alive = kAlive;
  std::unique_ptr<Communicator> communicator;
};

namespace {

Status find(ginComm_t comm, Communicator*& out) {
  if (comm == nullptr || comm->alive != kAlive) {
    return fail(Code::kInvalidArgument, "the communicator is null or destroyed");
  }
  out = comm->communicator.get();
  return {};
}

Status create(shmem_team_t team, ginComm_t* comm) {
  GIMLET_TRY(is_given(comm, "the place for the communicator"));
  // The value of SHMEM_TEAM_WORLD, whose header kernels need not include.
  const auto number = reinterpret_cast<std::uintptr_t>(team);
  if (number != 1) {
    return fail(Code::kInvalidArgument, "team {}; allowed is SHMEM_TEAM_WORLD", number);
  }
  std::unique_ptr<Communicator> made;
  GIMLET_TRY(Communicator::over_world(made));
  *comm = new ginComm(std::move(made));
  return {};
}

Status create_all(ginComm_t* comms, int n) {
  GIMLET_TRY(is_given(comms, "the place for the communicators"));
  if (n < 1 || n > kMostThreadRanks) {
    return fail(Code::kInvalidArgument, "{} ranks; allowed are 1 to {}", n, kMostThreadRanks);
  }
  std::vector<std::unique_ptr<Communicator>> made;
  GIMLET_TRY(Communicator::over_threads(n, made));
  for (auto& communicator : made) *comms++ = new ginComm(std::move(communicator));
  return {};
}

Status destroy(ginComm_t comm) {
  Communicator* communicator = nullptr;
  GIMLET_TRY(find(comm, communicator));
  comm->alive = 0;
  delete comm;
  return {};
}

Status abort_comm(ginComm_t comm) {
  Communicator* communicator = nullptr;
  GIMLET_TRY(find(comm, communicator));
  communicator->abort();
  // Kernels may still be on their way out and read its memory: it stays, reachable for leak
  // checkers.
  static std::mutex mutex;
  static std::vector<std::unique_ptr<Communicator>>* const aborted =
      new std::vector<std::unique_ptr<Communicator>>;
  comm->alive = 0;
  const std::scoped_lock lock(mutex);
  aborted->push_back(std::move(comm->communicator));
  delete comm;
  return {};
}

Status query(ginComm_t comm, ginCommProperties_t* properties) {
  Communicator* communicator = nullptr;
  GIMLET_TRY(find(comm, communicator));
  GIMLET_TRY(is_given(properties, "the place for the properties"));
  if (properties->magic != GIN_API_MAGIC || properties->size != sizeof *properties) {
    return fail(Code::kInvalidUsage,
                "the properties were not set up with GIN_COMM_PROPERTIES_INITIALIZER");
  }
  const auto type = [&](ginConnectionType_t connection) {
    if (!communicator->reaches(connection, nullptr)) return GIN_TYPE_NONE;
    return communicator->needs_proxy(connection) ? GIN_TYPE_PROXY : GIN_TYPE_GDAKI;
  };
  properties->rank = communicator->rank();
  properties->nRanks = communicator->size();
  properties->cudaDev = -1;
  properties->nvmlDev = -1;
  properties->deviceApiSupport = true;
  properties->multimemSupport = false;
  properties->ginType = type(GIN_CONNECTION_FULL);
  properties->nLsaTeams = communicator->size() / communicator->lsa_size();
  properties->hostRmaSupport = false;
  properties->railedGinType = type(GIN_CONNECTION_RAIL);
  return {};
}

Status barrier_requirement(ginComm_t comm, ginTeam_t team, int count, ginBarrierHandle_t* handle,
                           ginDevResourceRequirements_t* requirement) {
  Communicator* communicator = nullptr;
  GIMLET_TRY(find(comm, communicator));
  GIMLET_TRY(is_given(handle, "the place for the handle"));
  GIMLET_TRY(is_given(requirement, "the requirement"));
  if (team.nRanks < 1 || team.nRanks > communicator->size() || count < 0 || count > 1 << 20) {
    return fail(Code::kInvalidArgument,
                "{} barriers of a team of {} ranks; allowed are 0 to {} of 1 to {} ranks", count,
                team.nRanks, 1 << 20, communicator->size());
  }
  *requirement = {};
  requirement->ginSignalCount = count * static_cast<int>(::gin::impl::barrier_pitch(team.nRanks));
  requirement->outGinSignalStart = &handle->signal0;
  return {};
}

/// The table entry is readable by the host on every device so far.
Status peer_pointer(ginWindow_t window, std::size_t offset, int lsa_rank, void** pointer) {
  GIMLET_TRY(is_given(pointer, "the place for the pointer"));
  GIMLET_TRY(is_given(window, "the window"));
  *pointer = nullptr;
  if (lsa_rank < 0 || lsa_rank >= window->lsaSize) return {};
  const ginPeerMemory& part = window->peers[window->lsaSlot + static_cast<std::uint32_t>(lsa_rank)];
  if (offset > part.size) {
    return fail(Code::kInvalidArgument, "offset {} of a window part of {} bytes", offset,
                part.size);
  }
  *pointer = part.base + offset;
  return {};
}

/// Calls a member of the communicator that returns a Status.
template <class Call>
ginResult_t with_comm(const char* name, ginComm_t comm, Call call) {
  Communicator* communicator = nullptr;
  Status status = find(comm, communicator);
  if (status.ok()) status = call(*communicator);
  return finish(name, status);
}

constexpr ginTeam_t kNoTeam = {0, 0, 1};

}  // namespace

extern "C" {

ginResult_t ginCommCreate(shmem_team_t team, ginComm_t* comm) {
  return finish("ginCommCreate", create(team, comm));
}

ginResult_t ginCommInitAll(ginComm_t* comms, int n, const int*) {
  return finish("ginCommInitAll", create_all(comms, n));
}

ginResult_t ginCommDestroy(ginComm_t comm) {
  return finish("ginCommDestroy", destroy(comm));
}

ginResult_t ginCommAbort(ginComm_t comm) {
  return finish("ginCommAbort", abort_comm(comm));
}

ginResult_t ginCommCount(ginComm_t comm, int* count) {
  return with_comm("ginCommCount", comm, [&](Communicator& c) {
    if (count != nullptr) *count = c.size();
    return is_given(count, "the place for the count");
  });
}

ginResult_t ginCommUserRank(ginComm_t comm, int* rank) {
  return with_comm("ginCommUserRank", comm, [&](Communicator& c) {
    if (rank != nullptr) *rank = c.rank();
    return is_given(rank, "the place for the rank");
  });
}

ginResult_t ginCommGetAsyncError(ginComm_t comm, ginResult_t* asyncError) {
  return with_comm("ginCommGetAsyncError", comm, [&](Communicator& c) {
    if (asyncError != nullptr) *asyncError = c.async_error();
    return is_given(asyncError, "the place for the error");
  });
}

ginResult_t ginCommQueryProperties(ginComm_t comm, ginCommProperties_t* properties) {
  return finish("ginCommQueryProperties", query(comm, properties));
}

ginResult_t ginCommGetPeerPath(ginComm_t comm, int worldRank, const char** path) {
  return with_comm("ginCommGetPeerPath", comm, [&](Communicator& c) {
    GIMLET_TRY(is_given(path, "the place for the path"));
    return c.path_name(worldRank, *path);
  });
}

ginResult_t ginMemAlloc(void** pointer, size_t bytes) {
  Status status = is_given(pointer, "the place for the pointer");
  if (status.ok()) status = gimlet::gin::MemoryTable::of_process().allocate(bytes, *pointer);
  return finish("ginMemAlloc", status);
}

ginResult_t ginMemFree(void* pointer) {
  if (pointer == nullptr) return ginSuccess;
  return finish("ginMemFree", gimlet::gin::MemoryTable::of_process().release(pointer));
}

ginResult_t ginCommWindowRegister(ginComm_t comm, void* buffer, size_t bytes, ginWindow_t* window,
                                  int flags) {
  return with_comm("ginCommWindowRegister", comm, [&](Communicator& c) {
    ginWindow_t unused = nullptr;
    return c.register_window(buffer, bytes, flags, window == nullptr ? unused : *window);
  });
}

ginResult_t ginCommWindowDeregister(ginComm_t comm, ginWindow_t window) {
  return with_comm("ginCommWindowDeregister", comm,
                   [&](Communicator& c) { return c.deregister_window(window); });
}

ginResult_t ginWinGetUserPtr(ginComm_t comm, ginWindow_t window, void** pointer) {
  return with_comm("ginWinGetUserPtr", comm, [&](Communicator& c) {
    GIMLET_TRY(is_given(pointer, "the place for the pointer"));
    return c.user_pointer(window, *pointer);
  });
}

ginResult_t ginGetPeerDevicePointer(ginWindow_t window, size_t offset, int worldRank,
                                    void** pointer) {
  const int lsa_rank = window == nullptr ? 0 : worldRank - window->lsaFirst;
  return finish("ginGetPeerDevicePointer", peer_pointer(window, offset, lsa_rank, pointer));
}

ginResult_t ginGetLsaDevicePointer(ginWindow_t window, size_t offset, int lsaRank, void** pointer) {
  return finish("ginGetLsaDevicePointer", peer_pointer(window, offset, lsaRank, pointer));
}

ginResult_t ginBarrierCreateRequirement(ginComm_t comm, ginTeam_t team, int count,
                                        ginBarrierHandle_t* handle,
                                        ginDevResourceRequirements_t* requirement) {
  return finish("ginBarrierCreateRequirement",
                barrier_requirement(comm, team, count, handle, requirement));
}

ginResult_t ginDevCommCreate(ginComm_t comm, const ginDevCommRequirements_t* requirements,
                             ginDevComm_t* devComm) {
  return with_comm("ginDevCommCreate", comm, [&](Communicator& c) {
    GIMLET_TRY(is_given(devComm, "the place for the device communicator"));
    return c.create_device_comm(requirements, *devComm);
  });
}

ginResult_t ginDevCommDestroy(ginComm_t comm, const ginDevComm_t* devComm) {
  return with_comm("ginDevCommDestroy", comm, [&](Communicator& c) {
    GIMLET_TRY(is_given(devComm, "the device communicator"));
    return c.destroy_device_comm(*devComm);
  });
}

ginTeam_t ginTeamWorld(ginComm_t comm) {
  return comm == nullptr ? kNoTeam : comm->communicator->world_team();
}

ginTeam_t ginTeamLsa(ginComm_t comm) {
  return comm == nullptr ? kNoTeam : comm->communicator->lsa_team();
}

ginTeam_t ginTeamRail(ginComm_t comm) {
  return comm == nullptr ? kNoTeam : comm->communicator->rail_team();
}

int ginTeamRankToWorld(ginComm_t comm, ginTeam_t team, int rank) {
  return comm->communicator->rank() + (rank - team.rank) * team.stride;
}

int ginTeamRankToLsa(ginComm_t comm, ginTeam_t team, int rank) {
  return comm->communicator->lsa_team().rank + (rank - team.rank) * team.stride;
}

}  // extern "C"
