// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_POLL_SET_H
#define GIMLET_TOOLS_OSHRUN_POLL_SET_H

#include <poll.h>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace gimlet::oshrun {

using Clock = std::chrono::steady_clock;

// The earlier of two moments, either of which may be never.
inline std::optional<Clock::time_point> earlier(std::optional<Clock::time_point> a,
                                                std::optional<Clock::time_point> b) {
  if (!a) return b;
  if (!b) return a;
  return std::min(*a, *b);
}

// One round of waiting for descriptors: watch(), then wait() once.
class PollSet {
 public:
  // ready runs when one of events, an error or a hang-up was seen.
  void watch(int fd, short events, std::function<void()> ready);
  // Waits for a descriptor or for the moment, then runs what is ready.
  void wait(std::optional<Clock::time_point> until);

 private:
  std::vector<pollfd> descriptors_;
  std::vector<std::function<void()>> ready_;
};

}  // namespace gimlet::oshrun

#endif
