/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GIMLET_GIN_IMPL_HOOKS_H
#define GIMLET_GIN_IMPL_HOOKS_H

#include "gin/impl/exec.h"
#include "gin/impl/tables.h"

/* The slow parts of operations and waits on the CPU executor, in the library. */

#ifdef __cplusplus
extern "C" {
#endif

/* One fruitless look of a wait that saw `seen`: hands over to other threads, and now and then looks
   at the clock to report, to end all waits of the communicator (GIN_WAIT_TIMEOUT) or to end this
   one. Returns 0 to go on or ginTimeout when wait->limit (nanoseconds) is over. */
GIN_EXEC_API int gin_exec_comm_wait(struct ginWait* wait, uint64_t seen);

/* Sets the error word of the communicator for an operation that is not carried out, once, with one
   sentence; the words of its other ranks too. */
GIN_EXEC_API void gin_exec_comm_fault(const ginDevComm* comm, const struct ginFault* fault);

/* Ends the launch of the calling device thread with the code of the communicator's error word,
   which is set. The sentence about it is written by whoever set it. */
GIN_EXEC_API void gin_exec_comm_trap(const ginDevComm* comm) __attribute__((noreturn));

/* A slot of that context was written while the proxy thread that serves it slept. */
GIN_EXEC_API void gin_exec_comm_wake_proxy(const ginDevComm* comm, uint32_t context);

#ifdef __cplusplus
}
#endif

#endif
