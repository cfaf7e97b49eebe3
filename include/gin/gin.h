// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_GIN_H
#define GIMLET_GIN_GIN_H

/// All of GIN: the host's communicators and windows, and what kernels do with them.
#include "gin/action.h"
#include "gin/barrier.h"
#include "gin/comm.h"
#include "gin/context.h"
#include "gin/coop.h"
#include "gin/dev_comm.h"
#include "gin/launch.h"
#include "gin/platform.h"
#include "gin/result.h"
#include "gin/team.h"
#include "gin/window.h"

#endif
