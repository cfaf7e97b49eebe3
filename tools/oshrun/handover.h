// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_HANDOVER_H
#define GIMLET_TOOLS_OSHRUN_HANDOVER_H

#include "options.h"

namespace gimlet::oshrun {

// Whether the job is not for this host alone: hosts were given, or this is a scheduler's
// allocation and GIMLET_OSHRUN_HANDOVER is not `none`.
bool wants_handover(const Options& options);

// Becomes srun, prterun or mpirun, whichever is there. Returns only by LaunchError.
[[noreturn]] void hand_over(const Options& options);

}  // namespace gimlet::oshrun

#endif
