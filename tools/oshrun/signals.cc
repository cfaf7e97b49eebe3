// SPDX-License-Identifier: BSD-3-Clause
#include "signals.h"

#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launch_error.h"

namespace gimlet::oshrun {

Signals::Signals() {
  sigprocmask(SIG_SETMASK, nullptr, &original_.signal_mask);
  getrlimit(RLIMIT_NOFILE, &original_.open_files);
  // A reader that went away is an error of a write, not the launcher's death.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &original_.pipe_action);
  // Ignored by whoever started the launcher, it would make children vanish without a status.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, nullptr);

  sigemptyset(&taken_);
  for (const int signal :
       {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT}) {
    sigaddset(&taken_, signal);
  }
  fd_.reset(signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_.valid()) fail(kExitLauncher, "signalfd failed: {}", errno_text());
}

void Signals::block() {
  sigset_t blocked = taken_;
  sigaddset(&blocked, SIGTTOU);  // taking the terminal back from the background raises it
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
}

void Signals::unblock() {
  sigprocmask(SIG_SETMASK, &original_.signal_mask, nullptr);
}

std::vector<int> Signals::take() {
  std::vector<int> signals;
  signalfd_siginfo info;
  while (read(fd_.get(), &info, sizeof info) == sizeof info) {
    signals.push_back(static_cast<int>(info.ssi_signo));
  }
  return signals;
}

std::string signal_text(int signal) {
  const char* description = strsignal(signal);
  return fmt::format("signal {} ({})", signal, description != nullptr ? description : "unknown");
}

}  // namespace gimlet::oshrun
