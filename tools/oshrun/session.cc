// SPDX-License-Identifier: BSD-3-Clause
#include "session.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <new>
#include <system_error>

#include "launch_error.h"

namespace gimlet::oshrun {

struct Session::Shared {
  // False once the name turned out to belong to somebody else: then nothing is removed.
  std::atomic<bool> is_directory_ours;
  int pes;
};

namespace {

// Where directories of sessions are made: TMPDIR if it can be written to, else /tmp.
std::string temporary_directory() {
  const char* given = getenv("TMPDIR");
  if (given != nullptr && given[0] == '/' && access(given, W_OK | X_OK) == 0) return given;
  return "/tmp";
}

std::string random_name() {
  unsigned long long bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) {
    fail(kExitLauncher, "getrandom failed: {}", errno_text());
  }
  return fmt::format("oshrun.{}.{:016x}", getpid(), bits);
}

void remove_directory(const std::string& directory) {
  // A PE that was just killed may still be making a file, so one pass may not be enough.
  std::error_code error;
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::filesystem::remove_all(directory, error);
    if (!error) return;
    usleep(10'000);
  }
}

// Lets go of everything the launcher has open: whoever reads the launcher's output must see its end
// when the launcher ends, not when the janitor does.
void keep_only(int fd) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard < 3 && null >= 0; ++standard) dup2(null, standard);
  if (dup2(fd, 3) < 0) _exit(1);
  close_range(4, ~0U, 0);
}

}  // namespace

Session::Session(int pes) {
  static_assert(sizeof(Shared) % alignof(PeSlot) == 0);
  shared_bytes_ = sizeof(Shared) + static_cast<std::size_t>(pes) * sizeof(PeSlot);
  void* memory =
      mmap(nullptr, shared_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail(kExitLauncher, "mmap failed: {}", errno_text());
  shared_ = static_cast<Shared*>(memory);  // zeroes are the first values of all members
  shared_->is_directory_ours.store(true, std::memory_order_relaxed);
  shared_->pes = pes;
  slots_ = reinterpret_cast<PeSlot*>(shared_ + 1);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(kExitLauncher, "pipe failed: {}", errno_text());
  UniqueFd read_end(ends[0]);
  alive_ = UniqueFd(ends[1]);

  // The janitor knows the name before the directory exists, so that there is no instant at which
  // a killed launcher leaves it behind.
  directory_ = temporary_directory() + "/" + random_name();
  janitor_ = fork();
  if (janitor_ < 0) fail(kExitLauncher, "fork failed: {}", errno_text());
  if (janitor_ == 0) {
    // A signal meant for the job, from a terminal or by name, must not take the janitor with it.
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    setsid();
    prctl(PR_SET_NAME, "oshrun-janitor");
    keep_only(read_end.get());
    if (chdir("/") != 0) _exit(1);
    char byte;
    while (read(3, &byte, 1) < 0 && errno == EINTR) {
    }
    // acquire: pairs with the PE's release store before its exec.
    for (int pe = 0; pe < shared_->pes; ++pe) {
      const pid_t group = slots_[pe].group.load(std::memory_order_acquire);
      if (group > 0) kill(-group, SIGKILL);
    }
    if (shared_->is_directory_ours.load(std::memory_order_acquire)) remove_directory(directory_);
    _exit(0);
  }

  if (mkdir(directory_.c_str(), 0700) != 0) {
    const int error = errno;
    // release: the janitor reads it after it saw the pipe close.
    if (error == EEXIST) shared_->is_directory_ours.store(false, std::memory_order_release);
    fail(kExitLauncher, "cannot make the session directory {} : {}", directory_, errno_text(error));
  }
}

void Session::close() {
  if (janitor_ < 0) return;
  if (shared_->is_directory_ours.load(std::memory_order_relaxed)) remove_directory(directory_);
  alive_.reset();
  while (waitpid(janitor_, nullptr, 0) < 0 && errno == EINTR) {
  }
  janitor_ = -1;
}

Session::~Session() {
  close();
  munmap(shared_, shared_bytes_);
}

}  // namespace gimlet::oshrun
