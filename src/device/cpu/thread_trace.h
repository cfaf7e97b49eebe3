// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_THREAD_TRACE_H
#define GIMLET_DEVICE_CPU_THREAD_TRACE_H

#include <pthread.h>

#include <string>
#include <vector>

namespace gimlet::device {

struct DeviceThread;

/// Code addresses, the innermost frame first.
using Trace = std::vector<void*>;

/// Where `expected` is now, which runs on the system thread `carrier`. Empty if it has moved on or
/// can't be asked. A signal goes to `carrier`; one thread may call this at a time.
Trace take_trace(pthread_t carrier, const DeviceThread& expected);

/// One text a frame, down to the kernel.
std::vector<std::string> describe(const Trace& trace);

}  // namespace gimlet::device

#endif
