// SPDX-License-Identifier: BSD-3-Clause
#include "upcall_queue.h"

#include <sys/eventfd.h>

#include <cstdint>
#include <utility>

#include "launch_error.h"

namespace gimlet::oshrun {

UpcallQueue::UpcallQueue() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.valid()) fail(kExitLauncher, "eventfd failed: {}", errno_text());
}

void UpcallQueue::push(Upcall upcall) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    upcalls_.push_back(std::move(upcall));
  }
  // Cannot fail: the counter would have to be near 2^64.
  eventfd_write(wake_.get(), 1);
}

std::vector<Upcall> UpcallQueue::take() {
  // The counter is cleared first: a push after the swap makes the descriptor readable again.
  eventfd_t count = 0;
  eventfd_read(wake_.get(), &count);
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(upcalls_, {});
}

}  // namespace gimlet::oshrun
