/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GIMLET_GIN_IMPL_TABLES_H
#define GIMLET_GIN_IMPL_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "gin/dev_comm.h"
#ifdef __cplusplus
#include "gin/platform.h"
#endif

/*
 * Tables that the library writes and device code reads. A rank that loads and stores reach has a
 * slot; slots are given in rank order, so the slots of a load/store-accessible team are
 * consecutive. Tables are written before the DevComm that leads to them is returned, and windows
 * that are registered later before their handle is.
 */

#define GIN_NO_SLOT UINT32_MAX          /* no path leads there */
#define GIN_PROXY_SLOT (UINT32_MAX - 1) /* the proxy reaches it, loads and stores don't */
/* Added to the slot of a rank that loads and stores reach when its operations go through the ring
 * all the same. */
#define GIN_SLOT_BY_RING 0x80000000u
#define GIN_WINDOW_LIVE 0x77696e64u

/* The place of a rank in ginWindowEntry::peers, or GIN_PROXY_SLOT or GIN_NO_SLOT. */
#ifdef __cplusplus
GIN_HOST_DEVICE_INLINE constexpr uint32_t ginMappedSlot(uint32_t slot) {
  return slot >= GIN_PROXY_SLOT ? slot : slot & ~GIN_SLOT_BY_RING;
}
#endif

/* One rank's piece of a window, as mapped here. */
struct ginPeerMemory {
  char* base;
  uint64_t size;
};

struct ginWindowEntry {
  char* base; /* of this rank */
  uint64_t size;
  const struct ginPeerMemory* peers; /* by slot */
  int32_t rank;                      /* this rank of the world team */
  int32_t lsaFirst;                  /* world rank of the first member of the LSA team */
  int32_t lsaSize;
  uint32_t lsaSlot; /* slot of that member */
  uint32_t flags;
  uint32_t live; /* GIN_WINDOW_LIVE while registered */
  const uint16_t*
      segments;       /* by world rank: what a transport calls the rank's part; for the host */
  const void* staged; /* how transports name this rank's part when they may not touch it, else null;
                         for the host */
};

/* What a wait, an operation or a failure is about. */
typedef enum ginOperation {
  ginOpNone,
  ginOpPut,
  ginOpPutValue,
  ginOpGet,
  ginOpSignal,
  ginOpReadSignal,
  ginOpWaitSignal,
  ginOpResetSignal,
  ginOpShadow,
  ginOpCounter,
  ginOpWaitCounter,
  ginOpFlush,
  ginOpBarrier,
  ginOpContext,
  ginOpPointer,
  ginOpPost,
  ginOpAtomic,
  ginOpAbort
} ginOperation;

/* First bytes of the resource memory of each rank. The first detector moves state from fine to
 * writing, fills in the rest and moves it to set; nothing ever moves back. Waits and posts end on
 * anything but fine. */
enum { ginErrorFine = 0, ginErrorWriting = 1, ginErrorSet = 2 };
struct ginErrorWord {
  uint32_t state;
  int32_t code; /* ginResult_t */
  int32_t rank; /* that detected it */
  int32_t peer; /* world rank, or -1 */
  uint32_t operation;
  uint32_t reserved[3];
  uint64_t offset;
  uint64_t padding[11]; /* two cache lines: signals of others must not move it */
};

/* Why an operation was not carried out; `value`, `bytes` and `allowed` of ginFault by reason. */
typedef enum ginFaultReason {
  ginFaultWindow,      /* the handle names no window of this communicator */
  ginFaultPeer,        /* value: rank in the team, allowed: ranks of the team */
  ginFaultUnconnected, /* value: world rank that no path of this DevComm reaches */
  ginFaultRange,       /* value: offset, bytes, allowed: bytes of the peer's window */
  ginFaultAlignment,   /* value: offset of a word of `bytes` bytes */
  ginFaultSignal,      /* value: index, allowed: signals of a context */
  ginFaultCounter,     /* value: index, allowed: counters of a context */
  ginFaultContext,     /* value: index, allowed: contexts */
  ginFaultBarrier,     /* value: index, allowed: barriers of the handle */
  ginFaultOffset       /* value: offset that a slot of the ring can't hold, allowed: those below */
} ginFaultReason;

struct ginFault {
  uint32_t operation; /* ginOperation */
  uint32_t reason;    /* ginFaultReason */
  int64_t value;
  uint64_t bytes;
  uint64_t allowed;
  int32_t peer; /* world rank, or -1 */
};

/* One wait of a device thread, on its stack. */
struct ginWait {
  const ginDevComm* comm;
  const uint64_t* word;
  const uint64_t* net; /* second word, whose growth since net_base counts too; null: none */
  uint64_t net_base;
  uint32_t operation; /* ginOpWaitSignal, ginOpWaitCounter, ginOpBarrier, ginOpFlush, ginOpPost */
  uint32_t context;
  uint64_t index;     /* of the signal, counter or barrier; offset of a VA signal */
  ginWindow_t window; /* of a VA signal, else null */
  int32_t peer;       /* world rank that is waited for, or -1 */
  uint32_t looks;
  uint64_t awaited;
  uint64_t limit;   /* the wait may last so long (device clock); 0: no limit of its own */
  uint64_t started; /* device clock at the first fruitless look; 0 before */
  uint64_t next_report;
};

#endif
