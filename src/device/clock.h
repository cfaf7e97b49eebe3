// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CLOCK_H
#define GIMLET_DEVICE_CLOCK_H

#include <time.h>

#include <cstdint>

namespace gimlet::device {

/// Nanoseconds of the monotonic clock.
inline std::uint64_t now_ns() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace gimlet::device

#endif
