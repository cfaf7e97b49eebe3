/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators, windows and device communicators: the host side of GIN, for C and C++.
 *
 * "Collective" calls are made by every rank of the communicator, in the same order. They are
 * bounded: a rank that dies ends them on the others with ginRemoteError. One thread of a rank at a
 * time calls for one communicator. A call that fails says so in one sentence on standard error.
 */
#ifndef GIMLET_GIN_COMM_H
#define GIMLET_GIN_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gin/dev_comm.h"
#include "gin/result.h"
#include "gin/team.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ginComm* ginComm_t;
struct shmem_team;
typedef struct shmem_team* shmem_team_t;

/* ---- communicators ---- */

/// Makes a communicator over the PEs of a team; only SHMEM_TEAM_WORLD so far. Rank numbers are the
/// numbers in the team. Collective over the team, after shmem_init(). ginInvalidArgument: another
/// team; ginInvalidUsage: before shmem_init().
ginResult_t ginCommCreate(shmem_team_t team, ginComm_t* comm);

/// Makes n communicator handles whose ranks are threads of this process: comms[r] is rank r's, for
/// one thread to use. Called once, by any thread. `devices` names the device of each rank and may
/// be null; the CPU executor has one device and ignores it.
ginResult_t ginCommInitAll(ginComm_t* comms, int n, const int* devices);

/// Ends a communicator: its kernels have ended on every rank, its device communicators and windows
/// go with it. Not collective.
ginResult_t ginCommDestroy(ginComm_t comm);

/// Ends a communicator whose kernels may still run: their waits and operations, here and on the
/// other ranks, become no-ops, and their results are void. The memory they use stays until the
/// process ends. Not collective; safe from any thread.
ginResult_t ginCommAbort(ginComm_t comm);

ginResult_t ginCommCount(ginComm_t comm, int* count);
ginResult_t ginCommUserRank(ginComm_t comm, int* rank);

/// What went wrong in kernels of this communicator so far, or ginSuccess. Results of a kernel are
/// valid only if this is ginSuccess after it. A communicator does not recover.
ginResult_t ginCommGetAsyncError(ginComm_t comm, ginResult_t* asyncError);

/// Kinds of GIN support, with the values of ncclGinType_t.
typedef enum ginType_t {
  GIN_TYPE_NONE = 0,
  GIN_TYPE_PROXY = 2,
  GIN_TYPE_GDAKI = 3,
  GIN_TYPE_GPI = 4
} ginType_t;

typedef struct ginCommProperties {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int rank;
  int nRanks;
  int cudaDev;
  int nvmlDev;
  bool deviceApiSupport;
  bool multimemSupport;
  ginType_t ginType; /* kind that connects all ranks */
  int nLsaTeams;
  bool hostRmaSupport;
  ginType_t railedGinType; /* kind that connects rails */
} ginCommProperties_t;
#define GIN_COMM_PROPERTIES_INITIALIZER                                                     \
  {                                                                                         \
    sizeof(ginCommProperties_t), GIN_API_MAGIC, GIN_VERSION_CODE, 0, 0, 0, 0, false, false, \
        GIN_TYPE_NONE, 0, false, GIN_TYPE_NONE                                              \
  }

/// Fills in `properties`, which GIN_COMM_PROPERTIES_INITIALIZER has set up.
ginResult_t ginCommQueryProperties(ginComm_t comm, ginCommProperties_t* properties);

/// How device code reaches a rank: "direct" (loads and stores), "proxy" (a thread and a network),
/// or "none". The text is never freed.
ginResult_t ginCommGetPeerPath(ginComm_t comm, int worldRank, const char** path);

/* ---- memory and windows ---- */

/// Allocates at least `bytes` of zeroed, page-aligned memory that can be registered as a window.
/// Local to the caller. ginMemFree() of null does nothing; memory of a live window stays until the
/// window is deregistered.
ginResult_t ginMemAlloc(void** pointer, size_t bytes);
ginResult_t ginMemFree(void* pointer);

#define GIN_WIN_DEFAULT 0x00
#define GIN_WIN_COLL_SYMMETRIC 0x01
#define GIN_WIN_STRICT_ORDERING 0x02 /* needed by windows that hold VA signals */

/// Registers [buffer, buffer + bytes), which lies in one ginMemAlloc() allocation and is 16-byte
/// aligned, as this rank's part of a window; sizes may differ from rank to rank. Collective.
/// ginInvalidArgument: the memory of this rank can't be a window; ginRemoteError: that of another.
ginResult_t ginCommWindowRegister(ginComm_t comm, void* buffer, size_t bytes, ginWindow_t* window,
                                  int flags);

/// Ends this rank's use of a window; null is allowed. No rank may still use the memory of this one.
/// Not collective.
ginResult_t ginCommWindowDeregister(ginComm_t comm, ginWindow_t window);

/// The buffer that this rank registered.
ginResult_t ginWinGetUserPtr(ginComm_t comm, ginWindow_t window, void** pointer);

/// Address here of byte `offset` of the window part of a world rank or of a rank of the
/// load/store-accessible team; null when loads and stores don't reach it.
ginResult_t ginGetPeerDevicePointer(ginWindow_t window, size_t offset, int worldRank,
                                    void** pointer);
ginResult_t ginGetLsaDevicePointer(ginWindow_t window, size_t offset, int lsaRank, void** pointer);

/* ---- device communicators ---- */

typedef enum ginConnectionType_t {
  GIN_CONNECTION_NONE, /* no signals, counters or GIN barriers */
  GIN_CONNECTION_FULL, /* every rank reaches every rank */
  GIN_CONNECTION_RAIL  /* ranks reach their rail and their load/store-accessible team */
} ginConnectionType_t;

/// A piece of resource memory, signals and counters for one user of a device communicator. A list;
/// out pointers that are not null are set by ginDevCommCreate().
typedef struct ginDevResourceRequirements {
  struct ginDevResourceRequirements* next;
  size_t bufferSize;
  size_t bufferAlign; /* a power of two; 0 stands for 128 */
  ginDevResourceHandle_t* outBufferHandle;
  int ginSignalCount;
  int ginCounterCount;
  ginSignal_t* outGinSignalStart;
  ginCounter_t* outGinCounterStart;
} ginDevResourceRequirements_t;

/// A handle for multicast memory, which no path offers so far.
typedef struct ginMultimemHandle {
  void* mcBasePtr;
} ginMultimemHandle_t;

typedef struct ginTeamRequirements {
  struct ginTeamRequirements* next;
  ginTeam_t team;
  bool multimem;
  ginMultimemHandle_t* outMultimemHandle;
} ginTeamRequirements_t;

#define GIN_CONFIG_UNDEF_INT (-2147483647 - 1)

/// What a device communicator must have; equal on every rank. Set up with
/// GIN_DEV_COMM_REQUIREMENTS_INITIALIZER.
typedef struct ginDevCommRequirements {
  size_t size;
  unsigned int magic;
  unsigned int version;
  ginDevResourceRequirements_t* resourceRequirementsList;
  ginTeamRequirements_t* teamRequirementsList;
  bool lsaMultimem;
  int barrierCount;
  int lsaBarrierCount;
  int railGinBarrierCount;
  int lsaLLA2ABlockCount;
  int lsaLLA2ASlotCount;
  bool ginForceEnable; /* older name of GIN_CONNECTION_FULL */
  int ginContextCount; /* a hint; see ginDevComm::ginContextCount */
  int ginSignalCount;
  int ginCounterCount;
  ginConnectionType_t ginConnectionType;
  bool ginExclusiveContexts;
  int ginQueueDepth; /* requests of a context that a proxy has not taken yet; 0: 4096 */
  int ginTrafficClass;
  int worldGinBarrierCount;
  bool ginStrongSignalsRequired; /* strength of SignalInc, SignalAdd and the like */
  bool ginVaSignalsRequired;
} ginDevCommRequirements_t;
#define GIN_DEV_COMM_REQUIREMENTS_INITIALIZER                                                      \
  {                                                                                                \
    sizeof(ginDevCommRequirements_t), GIN_API_MAGIC, GIN_VERSION_CODE, NULL, NULL, false, 0, 0, 0, \
        0, 0, false, 4, 0, 0, GIN_CONNECTION_NONE, false, 0, GIN_CONFIG_UNDEF_INT, 0, true, true   \
  }

/// Fills in a list entry that asks for `count` barriers of the ranks of `team`; `handle` is set by
/// ginDevCommCreate().
ginResult_t ginBarrierCreateRequirement(ginComm_t comm, ginTeam_t team, int count,
                                        ginBarrierHandle_t* handle,
                                        ginDevResourceRequirements_t* requirement);

/// Makes what kernels need to communicate. Collective, ends with a barrier. Signals, counters,
/// shadows and resource buffers are zero. ginInvalidUsage: requirements that were not set up,
/// differ between ranks or can't be met; ginInvalidArgument: a value that is not allowed.
ginResult_t ginDevCommCreate(ginComm_t comm, const ginDevCommRequirements_t* requirements,
                             ginDevComm_t* devComm);

/// Frees it after the kernels that use it have ended on this rank. Not collective.
ginResult_t ginDevCommDestroy(ginComm_t comm, const ginDevComm_t* devComm);

#ifdef __cplusplus
}
#endif

/* ---- teams ---- */

#ifdef __cplusplus
extern "C" {
#endif

/// The teams of a communicator as this rank sees them. A null communicator gives a team without
/// members.
ginTeam_t ginTeamWorld(ginComm_t comm);
ginTeam_t ginTeamLsa(ginComm_t comm);
ginTeam_t ginTeamRail(ginComm_t comm);
int ginTeamRankToWorld(ginComm_t comm, ginTeam_t team, int rank);
int ginTeamRankToLsa(ginComm_t comm, ginTeam_t team, int rank);

#ifdef __cplusplus
}
#endif

#endif
