// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_SPAWN_H
#define GIMLET_TOOLS_OSHRUN_SPAWN_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "environment.h"
#include "session.h"

namespace gimlet::oshrun {

// What the launcher changed of its own process and gives back to each PE.
struct OriginalState {
  sigset_t signal_mask;
  struct sigaction pipe_action;
  rlimit open_files;
};

// Everything about one PE's process that is settled before it exists.
struct SpawnPlan {
  std::string file;
  std::vector<std::string> argv;
  Environment environment;
  std::string working_directory;
  std::vector<unsigned long> cpu_mask;
  int in = -1;
  int out = -1;
  int err = -1;
  bool takes_terminal = false;  // becomes the foreground process group of the terminal on `in`
};

// Starts the process as the leader of a new process group, to be killed by the kernel when the
// calling thread ends. Throws LaunchError when the program can't be executed.
pid_t spawn(SpawnPlan& plan, const OriginalState& original, PeSlot& slot);

}  // namespace gimlet::oshrun

#endif
