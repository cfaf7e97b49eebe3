/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GIMLET_GIN_RESULT_H
#define GIMLET_GIN_RESULT_H

#ifdef __cplusplus
extern "C" {
#endif

/// What every gin* function of the host returns. The values are those of ncclResult_t.
typedef enum ginResult_t {
  ginSuccess = 0,
  ginUnhandledCudaError = 1, /* the device failed */
  ginSystemError = 2,        /* a system call or a library below failed */
  ginInternalError = 3,      /* the communicator was aborted, or an invariant of Gimlet is broken */
  ginInvalidArgument = 4,    /* a value is not allowed */
  ginInvalidUsage = 5,       /* allowed values, wrong moment or combination */
  ginRemoteError = 6,        /* another rank failed */
  ginInProgress = 7,
  ginTimeout = 8, /* a wait lasted longer than it may */
  ginNumResults = 9
} ginResult_t;

/// Text of a result: one lower case sentence, never null, never freed.
const char* ginGetErrorString(ginResult_t result);

/// Sentence of the last call of this thread that did not return ginSuccess, "" when there was none.
/// Valid until the thread's next failing call.
const char* ginGetLastError(void);

#ifdef __cplusplus
}
#endif

#endif
