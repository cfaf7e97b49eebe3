// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_RESULT_H
#define GIMLET_GIN_RESULT_H

/// What every gin* call returns. The values are those of ncclResult_t, so that the compatibility
/// header is aliases only.
typedef enum {
  ginSuccess = 0,
  ginUnhandledCudaError = 1,  ///< a kernel or the device below it failed
  ginSystemError = 2,         ///< a call to the system failed
  ginInternalError = 3,       ///< an invariant of the library does not hold
  ginInvalidArgument = 4,     ///< a value that is not allowed
  ginInvalidUsage = 5,        ///< an allowed value at the wrong moment or in a wrong combination
  ginRemoteError = 6,         ///< a peer failed or is gone
  ginInProgress = 7,          ///< started and not yet complete
  ginTimeout = 8,             ///< a wait lasted longer than its limit
  ginNumResults = 9
} ginResult_t;

#endif
