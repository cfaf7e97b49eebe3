// SPDX-License-Identifier: BSD-3-Clause
#include "process_table.h"

#include <signal.h>
#include <sys/wait.h>

#include "launch_error.h"

namespace gimlet::oshrun {

void ProcessTable::start(Pe& pe) {
  pe.is_running = true;
  ++running_;
}

std::vector<Pe*> ProcessTable::take_ended() {
  std::vector<Pe*> ended;
  for (Pe& pe : pes_) {
    if (!pe.is_running) continue;
    siginfo_t info{};
    // WNOWAIT leaves the zombie.
    if (waitid(P_PID, static_cast<id_t>(pe.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) continue;
    if (info.si_pid == 0) continue;
    pe.is_running = false;
    --running_;
    pe.kill_signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    pe.exit_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    ended.push_back(&pe);
  }
  return ended;
}

void ProcessTable::signal_groups(int signal) {
  for (const Pe& pe : pes_) {
    if (pe.pid > 0) kill(-pe.pid, signal);
  }
}

void ProcessTable::reap_all() {
  signal_groups(SIGKILL);
  for (Pe& pe : pes_) {
    if (pe.pid <= 0) continue;
    // From here on the number is no longer ours to kill, for the janitor neither.
    session_.slot(pe.number).group.store(0, std::memory_order_release);
    while (waitpid(pe.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    pe.pid = -1;
  }
}

std::string range_text(const std::vector<int>& ascending) {
  std::string text;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(ascending[i]);
    if (last > i) text += "-" + std::to_string(ascending[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace gimlet::oshrun
