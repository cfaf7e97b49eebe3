// SPDX-License-Identifier: BSD-3-Clause
#include "poll_set.h"

#include <algorithm>
#include <climits>
#include <utility>

namespace gimlet::oshrun {

void PollSet::watch(int fd, short events, std::function<void()> ready) {
  descriptors_.push_back({fd, events, 0});
  ready_.push_back(std::move(ready));
}

void PollSet::wait(std::optional<Clock::time_point> until) {
  int limit_ms = -1;
  if (until) {
    // Rounded up: waking early would only mean another round.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count();
    limit_ms = static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
  }
  if (poll(descriptors_.data(), descriptors_.size(), limit_ms) <= 0) return;
  for (std::size_t i = 0; i < descriptors_.size(); ++i) {
    if (descriptors_[i].revents != 0) ready_[i]();
  }
}

}  // namespace gimlet::oshrun
