// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_KERNEL_NAME_H
#define GIMLET_DEVICE_CPU_KERNEL_NAME_H

#include <string>

namespace gimlet::device {

/// The name of a kernel for messages, without namespaces' parameters: from the symbols of the
/// program or library that holds `function`, else `fallback`, else "kernel". Lives for ever.
const char* kernel_name(const void* function, const char* fallback);

/// The function around `address`, its file, and the offset there that addr2line takes.
std::string code_place(const void* address);

}  // namespace gimlet::device

#endif
