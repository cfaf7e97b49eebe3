// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_CAPTURED_STDERR_H
#define GIMLET_TESTS_CAPTURED_STDERR_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

namespace testing {

/// How often `part` occurs.
inline std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++times;
  return times;
}

/// What the process writes to standard error while this lives.
class CapturedStderr {
 public:
  CapturedStderr() : file_(::memfd_create("stderr", MFD_CLOEXEC)), before_(::dup(STDERR_FILENO)) {
    // Writers of a file of memory share one offset that nothing guards: without O_APPEND two that
    // write at the same moment write over each other.
    if (::fcntl(file_, F_SETFL, O_APPEND) != 0 || ::dup2(file_, STDERR_FILENO) < 0) std::abort();
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;
  ~CapturedStderr() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(file_);
  }

  std::string text() const {
    std::string all;
    char piece[512];
    for (;;) {
      const ::ssize_t got = ::pread(file_, piece, sizeof piece, static_cast<::off_t>(all.size()));
      if (got <= 0) return all;
      all.append(piece, static_cast<std::size_t>(got));
    }
  }
  bool has(const std::string& part) const { return text().find(part) != std::string::npos; }

 private:
  int file_;
  int before_;
};

}  // namespace testing

#endif
