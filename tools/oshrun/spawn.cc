// SPDX-License-Identifier: BSD-3-Clause
#include "spawn.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch_error.h"

namespace gimlet::oshrun {
namespace {

// The plan as plain pointers: between vfork and exec the child borrows the launcher's memory and
// must not allocate.
struct ChildPlan {
  const char* file;
  char* const* argv;
  char* const* shell_argv;  // /bin/sh file arguments, for a script without an interpreter line
  char* const* environment;
  const char* working_directory;
  const unsigned long* cpu_mask;
  std::size_t cpu_mask_bytes;
  int in, out, err;
  bool takes_terminal;
  pid_t launcher;
};

// Async-signal-safe throughout. Only returns when the program could not be executed.
void become_program(const ChildPlan& plan, const OriginalState& original, PeSlot& slot) {
  setpgid(0, 0);
  // release: the janitor reads it after the launcher's end of the pipe closed.
  slot.group.store(getpid(), std::memory_order_release);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A launcher that died before the line above sent no death signal.
  if (getppid() != plan.launcher) _exit(kExitLauncher);
  if (plan.takes_terminal) tcsetpgrp(plan.in, getpid());  // SIGTTOU is still blocked
  if (dup2(plan.in, 0) < 0 || dup2(plan.out, 1) < 0 || dup2(plan.err, 2) < 0) {
    slot.exec_error.store(errno, std::memory_order_relaxed);
    return;
  }
  if (plan.working_directory[0] != '\0' && chdir(plan.working_directory) != 0) {
    slot.is_directory_error.store(true, std::memory_order_relaxed);
    slot.exec_error.store(errno, std::memory_order_relaxed);
    return;
  }
  if (plan.cpu_mask_bytes > 0) {
    // A refusal leaves the PE unbound, which is slower but not wrong.
    sched_setaffinity(0, plan.cpu_mask_bytes, reinterpret_cast<const cpu_set_t*>(plan.cpu_mask));
  }
  setrlimit(RLIMIT_NOFILE, &original.open_files);
  sigaction(SIGPIPE, &original.pipe_action, nullptr);
  sigprocmask(SIG_SETMASK, &original.signal_mask, nullptr);
  execve(plan.file, plan.argv, plan.environment);
  if (errno == ENOEXEC) execve("/bin/sh", plan.shell_argv, plan.environment);
  slot.exec_error.store(errno, std::memory_order_relaxed);
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void fail_to_execute(const SpawnPlan& plan, const PeSlot& slot) {
  const int error = slot.exec_error.load(std::memory_order_relaxed);
  if (slot.is_directory_error.load(std::memory_order_relaxed)) {
    fail(kExitCannotExecute, "cannot change to the working directory {} : {}",
         plan.working_directory, errno_text(error));
  }
  fail(error == ENOENT ? kExitNotFound : kExitCannotExecute, "cannot execute {} : {}", plan.file,
       errno_text(error));
}

}  // namespace

pid_t spawn(SpawnPlan& plan, const OriginalState& original, PeSlot& slot) {
  const std::vector<char*> argv = pointers_to(plan.argv);
  std::vector<char*> shell_argv = argv;
  char shell[] = "/bin/sh";
  shell_argv[0] = plan.file.data();
  shell_argv.insert(shell_argv.begin(), shell);
  const std::vector<char*> environment = plan.environment.pointers();
  const ChildPlan child{plan.file.c_str(),
                        argv.data(),
                        shell_argv.data(),
                        environment.data(),
                        plan.working_directory.c_str(),
                        plan.cpu_mask.data(),
                        plan.cpu_mask.size() * sizeof(unsigned long),
                        plan.in,
                        plan.out,
                        plan.err,
                        plan.takes_terminal,
                        getpid()};

  // vfork, not fork: it copies no page tables and returns after the exec, so that a failed exec is
  // known here. The slot is shared memory because under some sanitizers vfork is fork.
  const pid_t pid = vfork();
  if (pid == 0) {
    become_program(child, original, slot);
    _exit(kExitNotFound);
  }
  if (pid < 0) fail(kExitLauncher, "cannot start another process: {}", errno_text());
  setpgid(pid,
          pid);  // no effect after the exec; where vfork is fork the child may not be there yet
  if (slot.exec_error.load(std::memory_order_relaxed) == 0) return pid;
  slot.group.store(0, std::memory_order_release);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  fail_to_execute(plan, slot);
}

}  // namespace gimlet::oshrun
