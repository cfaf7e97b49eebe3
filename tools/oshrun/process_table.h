// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_PROCESS_TABLE_H
#define GIMLET_TOOLS_OSHRUN_PROCESS_TABLE_H

#include <sys/types.h>

#include <string>
#include <vector>

#include "session.h"

namespace gimlet::oshrun {

struct Pe {
  int number = 0;
  int app = 0;
  std::string program;  // as the user wrote it
  pid_t pid = -1;       // leads a process group of that number
  bool is_running = false;
  // Between PMIx_Init and PMIx_Finalize. A program that exits in between leaves its peers waiting.
  bool is_connected = false;
  int exit_code = 0;    // 128 + signal when a signal killed it
  int kill_signal = 0;  // 0: it exited
};

// The processes of the job. A PE that ended stays a zombie until reap_all(): as long as it is one,
// no stranger can get its number, so that signals to its group never go astray.
class ProcessTable {
 public:
  explicit ProcessTable(Session& session) : session_(session) {}

  std::vector<Pe>& pes() { return pes_; }
  [[nodiscard]] int running() const { return running_; }

  // Counts a PE whose pid has been filled in.
  void start(Pe& pe);
  // The PEs that ended since the last call, lowest number first, with how they ended filled in.
  std::vector<Pe*> take_ended();
  // Sends to the process group of every PE, also of those that ended: helpers may live on there.
  void signal_groups(int signal);
  // Ends what is left of all groups and lets their leaders go.
  void reap_all();

 private:
  Session& session_;
  std::vector<Pe> pes_;
  int running_ = 0;
};

// PE numbers as ranges: "0,2-5".
std::string range_text(const std::vector<int>& ascending);

}  // namespace gimlet::oshrun

#endif
