// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_BLOCK_H
#define GIMLET_DEVICE_CPU_BLOCK_H

#include <string>

#include "device/cpu/block_sync.h"
#include "device/cpu/device_thread.h"
#include "device/cpu/launch.h"
#include "device/cpu/shared_arena.h"

namespace gimlet::device {

/// A block of a launch while it is resident, in either mode.
struct Block {
  Launch* launch = nullptr;
  gin_exec_dim index{};
  BlockSync sync;
  SharedArena shared;
};

/// Fills in who `thread` is.
void identify(DeviceThread& thread, Block& block, unsigned rank);

/// "thread (1,0,0) of block (0,0,0) of kernel scale"
std::string where(const DeviceThread& thread);

/// Runs the kernel in `thread`; an exception that leaves it ends the launch with an error.
void run_kernel(DeviceThread& thread);

/// Ends the launch of a block none of whose threads can ever run again.
void fail_stuck(Block& block);

}  // namespace gimlet::device

#endif
