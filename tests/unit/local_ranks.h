// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_UNIT_LOCAL_RANKS_H
#define GIMLET_TESTS_UNIT_LOCAL_RANKS_H

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "pgas/group.h"

namespace gimlet::tests {

using Groups = std::vector<std::unique_ptr<pgas::Group>>;

/// Runs `body` on a thread for each rank, with the rank's group, which it may take or let go; true
/// when it was true everywhere.
inline bool on_each_rank(Groups& groups,
                         const std::function<bool(std::unique_ptr<pgas::Group>&)>& body) {
  std::atomic<std::size_t> good{0};
  std::vector<std::thread> threads;
  for (auto& group : groups) {
    threads.emplace_back([&body, &good, &group] {
      if (body(group)) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return good == groups.size();
}

}  // namespace gimlet::tests

#endif
