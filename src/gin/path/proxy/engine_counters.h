// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_PROXY_ENGINE_COUNTERS_H
#define GIMLET_GIN_PATH_PROXY_ENGINE_COUNTERS_H

#include <atomic>
#include <cstdint>

namespace gimlet::gin {

/// A number that one thread counts and any may read.
class Tally {
 public:
  void add(std::uint64_t more) {
    count_.store(count_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  std::uint64_t read() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_{0};
};

/// The same, read at some time, perhaps of several threads.
struct EngineCounts {
  std::uint64_t requests = 0, batches = 0, drains = 0, queued = 0, parks = 0, wake_ups = 0;

  EngineCounts& operator+=(const EngineCounts& other) {
    requests += other.requests;
    batches += other.batches;
    drains += other.drains;
    queued += other.queued;
    parks += other.parks;
    wake_ups += other.wake_ups;
    return *this;
  }
};

/// What a proxy thread has done, for tests and the debug log.
struct EngineCounters {
  Tally requests;  // taken out of rings
  Tally batches;   // how often a ring had something when it was looked at
  Tally drains;    // requests that ask a peer whether all before is visible
  Tally queued;    // requests that found no room in their lane at once
  Tally parks;     // how often the thread went to sleep
  Tally wake_ups;  // how often it was rung for before it slept again

  EngineCounts read() const {
    return {requests.read(), batches.read(), drains.read(),
            queued.read(),   parks.read(),   wake_ups.read()};
  }
};

}  // namespace gimlet::gin

#endif
