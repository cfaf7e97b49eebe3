// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_HOOKS_H
#define GIMLET_DEVICE_CPU_HOOKS_H

namespace gimlet::device {

/// A host wait loop steps: hands over and returns true if it runs inside a kernel.
bool yield_device_thread(bool first_look);

/// gin_exec_wake(): a word changed that device threads may wait for.
void wake_device_threads();

/// The device number of the calling host thread.
int current_device();

}  // namespace gimlet::device

#endif
