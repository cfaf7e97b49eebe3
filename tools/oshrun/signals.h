// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_SIGNALS_H
#define GIMLET_TOOLS_OSHRUN_SIGNALS_H

#include <signal.h>

#include <string>
#include <vector>

#include "device/unique_fd.h"
#include "spawn.h"

namespace gimlet::oshrun {

// Takes the launcher's signals from a descriptor in place of handlers.
class Signals {
 public:
  // Saves what is changed; no signal is blocked yet.
  Signals();

  // From block() on signals wait until they are taken; threads made meanwhile never get any.
  void block();
  // Back to how the process was started: a signal then ends the launcher, as by default.
  void unblock();

  // Those that arrived since the last call, each once.
  std::vector<int> take();
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const OriginalState& original() const { return original_; }

 private:
  sigset_t taken_;
  OriginalState original_;
  UniqueFd fd_;
};

// "signal 9 (Killed)"
std::string signal_text(int signal);

}  // namespace gimlet::oshrun

#endif
