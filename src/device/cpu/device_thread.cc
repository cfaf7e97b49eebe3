// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/device_thread.h"

namespace gimlet::device {

constinit thread_local std::atomic<DeviceThread*> current_slot{nullptr};

}  // namespace gimlet::device

extern "C" const gin_exec_thread* gin_exec_self(void) {
  const gimlet::device::DeviceThread* const thread = gimlet::device::current_thread();
  return thread == nullptr ? nullptr : &thread->info;
}
