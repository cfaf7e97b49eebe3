// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_PROXY_HEARD_ERROR_H
#define GIMLET_GIN_PATH_PROXY_HEARD_ERROR_H

#include <atomic>
#include <cstdint>

#include "gin/error_word.h"
#include "gin/impl/tables.h"

namespace gimlet::gin {

/// The first error that the listeners of a device communicator heard of. Whoever calls a listener
/// holds what others wait for, the transport's token for instance, so a listener only leaves the
/// error here, and a proxy thread makes the sentence. Later ones are dropped: an error word is set
/// once.
class HeardError {
 public:
  struct Error {
    ErrorRecord record;
    bool has_fault = false;  // else another rank has told it
    ginFault fault{};
  };

  /// From any thread. Never waits.
  void leave(const Error& error) {
    State none = State::kNone;
    if (!state_.compare_exchange_strong(none, State::kWriting, std::memory_order_relaxed)) return;
    error_ = error;
    state_.store(State::kHere, std::memory_order_release);
  }
  bool is_here() const { return state_.load(std::memory_order_acquire) == State::kHere; }
  /// For one caller.
  bool take(Error& error) {
    State here = State::kHere;
    // Acquire takes the release of leave().
    if (!state_.compare_exchange_strong(here, State::kTaken, std::memory_order_acquire))
      return false;
    error = error_;
    return true;
  }

 private:
  enum class State : std::uint8_t { kNone, kWriting, kHere, kTaken };
  std::atomic<State> state_{State::kNone};
  Error error_;
};

}  // namespace gimlet::gin

#endif
