// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_INPUT_H
#define GIMLET_TOOLS_OSHRUN_INPUT_H

#include <string>

#include "device/unique_fd.h"
#include "poll_set.h"

namespace gimlet::oshrun {

// Passes what is typed at the terminal on to a PE. Only a terminal needs it: a PE is not in the
// terminal's foreground process group and would be stopped for reading; anything else it inherits.
class TerminalInput {
 public:
  TerminalInput() = default;
  // Reads the terminal on standard input, writes to the pipe.
  explicit TerminalInput(UniqueFd to);

  void watch(PollSet& set);

 private:
  void read_some();
  void write_some();

  UniqueFd to_;
  std::string pending_;
  bool has_ended_ = true;
};

}  // namespace gimlet::oshrun

#endif
