// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_STATUS_RESULT_H
#define GIMLET_GIN_STATUS_RESULT_H

#include "device/status.h"
#include "gin/result.h"

namespace gimlet::gin {

ginResult_t result_of(Code code);

/// Ends a call of the C interface: a failure is written once, as `call: sentence`, and kept for
/// ginGetLastError().
ginResult_t finish(const char* call, const Status& status);

}  // namespace gimlet::gin

#endif
