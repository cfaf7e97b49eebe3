/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GIMLET_GIN_DEV_COMM_H
#define GIMLET_GIN_DEV_COMM_H

#include <stddef.h>
#include <stdint.h>

/// Revision of the structs that programs hand to the library.
#define GIN_VERSION_CODE 100
#define GIN_API_MAGIC 0x67696e01u

/// A window: a piece of memory that every rank of a communicator registered together. Usable on the
/// host and in kernels; opaque to both.
typedef struct ginWindowEntry* ginWindow_t;

/// Index of a signal or counter of a context, from 0.
typedef uint32_t ginSignal_t;
typedef uint32_t ginCounter_t;

/// Place of a resource buffer in ginDevComm::resourceWindow, in units of 128 bytes.
typedef uint32_t ginDevResourceHandle_t;

/// The signals of a group of barriers, made by ginBarrierCreateRequirement() or a barrier count.
typedef struct ginBarrierHandle {
  ginSignal_t signal0;
  ginDevResourceHandle_t unused;
} ginBarrierHandle_t;

/// What gin::Context::flushAsync() gives and gin::Context::wait() takes: a plain value.
typedef struct ginRequest {
  uint64_t opaque[2];
} ginRequest_t;

/// Which threads may use a context at the same time: a property of the gin::Context object.
#ifdef __cplusplus
enum ginResourceSharingMode : uint8_t
#else
enum ginResourceSharingMode
#endif
{
  GIN_RESOURCE_SHARING_GPU = 0,   /* any threads of the device */
  GIN_RESOURCE_SHARING_CTA = 1,   /* the threads of one block */
  GIN_RESOURCE_SHARING_THREAD = 2 /* one thread */
};
#ifndef __cplusplus
typedef enum ginResourceSharingMode ginResourceSharingMode;
#endif

/// Hints of one operation; every path may ignore them.
typedef enum ginOptFlags {
  ginOptFlagsDefault = 0,
  ginOptFlagsMaySkipCreditCheck = 1 << 0, /* fewer operations are open than the queue is deep */
  ginOptFlagsAggregateRequests = 1 << 1   /* another operation to the same peer follows soon */
} ginOptFlags;

/// Scratch of 64 bytes in block-shared memory that a kernel may lend to operations.
typedef struct ginDescriptorSmem {
#ifdef __cplusplus
  alignas(16)
#else
  _Alignas(16)
#endif
      char space[64];
} ginDescriptorSmem;

/// What a kernel knows of a communicator. Made by ginDevCommCreate(), passed to kernels by value,
/// valid until ginDevCommDestroy().
typedef struct ginDevComm {
  uint32_t magic;
  uint32_t version;
  int rank;    /* this rank of the world team */
  int nRanks;  /* size of the world team */
  int lsaRank; /* this rank of the load/store-accessible team */
  int lsaSize;
  uint32_t ginContextCount;
  uint32_t ginSignalCount;  /* of each context, those of barriers and resource lists included */
  uint32_t ginCounterCount; /* of each context, those of resource lists included */
  uint32_t ginConnectionCount;
  ginBarrierHandle_t worldGinBarrier;
  ginBarrierHandle_t railGinBarrier;
  uint32_t worldGinBarrierCount;
  uint32_t railGinBarrierCount;
  ginWindow_t resourceWindow; /* holds resource buffers, zeroed at creation */

  /* The rest is for the headers of Gimlet. */
  uint32_t strongLegacySignals; /* SignalInc, SignalAdd and the like are strong */
  uint32_t windowCapacity;
  uint32_t trapsOnError; /* the first thread that sees the error word set ends its launch */
  uint32_t unused;
  struct ginWindowEntry* windowTable;
  const uint32_t* peerSlots; /* by world rank: see impl/tables.h */
  uint64_t signalsOffset;    /* in the resource window: [context][signal] of 8 bytes */
  uint64_t shadowsOffset;
  uint64_t countersOffset;
  uint64_t signalsPitch; /* bytes from one context to the next */
  uint64_t countersPitch;
  struct ginErrorWord* error; /* this rank's */
  struct ginRing* rings;      /* by context; null: no peer is reached through a proxy */
  uint64_t* netSignals;       /* what came through proxies, laid out like the signals */
  uint64_t* netSignalBases;   /* netSignals at the last reset */
  uint64_t* netCounters;      /* likewise for counters */
  uint64_t* netCounterBases;
  void* host; /* the library's own records; not for device code on a GPU */
  void* proxy;
} ginDevComm;
typedef ginDevComm ginDevComm_t;

#endif
