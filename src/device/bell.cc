// SPDX-License-Identifier: BSD-3-Clause
#include "device/bell.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace gimlet::device {

void Bell::ring() {
  rings_.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void Bell::sleep(std::uint32_t seen, std::uint64_t limit_ns) {
  const timespec limit = {static_cast<time_t>(limit_ns / 1'000'000'000u),
                          static_cast<long>(limit_ns % 1'000'000'000u)};
  ::syscall(SYS_futex, &rings_, FUTEX_WAIT_PRIVATE, seen, limit_ns == 0 ? nullptr : &limit, nullptr,
            0);
}

bool barrier_of_all_threads() {
  static const bool registered =
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return registered && ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace gimlet::device
