// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_SESSION_H
#define GIMLET_TOOLS_OSHRUN_SESSION_H

#include <sys/types.h>

#include <atomic>
#include <string>

#include "device/unique_fd.h"

namespace gimlet::oshrun {

// What a PE's process tells the launcher and the janitor; lives in memory that all three share.
struct PeSlot {
  // The PE's process group. Stored by the PE before it runs the program, cleared by the launcher
  // after the group was killed and before its leader is reaped: while it is set the number can't
  // have passed to a stranger.
  std::atomic<pid_t> group;
  // errno of a failed exec, and whether changing to the working directory was what failed.
  std::atomic<int> exec_error;
  std::atomic<bool> is_directory_error;
};

// The session directory, and the janitor that outlives the launcher to remove it and to kill what
// is left of the PEs if the launcher is killed.
class Session {
 public:
  // Makes both. Must run before the process has a second thread.
  explicit Session(int pes);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] PeSlot& slot(int pe) { return slots_[pe]; }

  // Removes the directory and waits until the janitor is gone.
  void close();

 private:
  struct Shared;

  Shared* shared_ = nullptr;
  std::size_t shared_bytes_ = 0;
  PeSlot* slots_ = nullptr;
  std::string directory_;
  UniqueFd alive_;  // the janitor reads end of file from it when the launcher is gone
  pid_t janitor_ = -1;
};

}  // namespace gimlet::oshrun

#endif
