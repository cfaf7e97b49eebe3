// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_LAUNCH_ERROR_H
#define GIMLET_TOOLS_OSHRUN_LAUNCH_ERROR_H

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace gimlet::oshrun {

// Exit codes of the launcher's own; 124 to 127 are those of timeout(1) and env(1).
inline constexpr int kExitUsage = 2;
inline constexpr int kExitTimeout = 124;
inline constexpr int kExitLauncher = 125;
inline constexpr int kExitCannotExecute = 126;
inline constexpr int kExitNotFound = 127;

// Ends the launcher with one sentence and an exit code.
class LaunchError : public std::runtime_error {
 public:
  LaunchError(int exit_code, const std::string& sentence)
      : std::runtime_error(sentence), exit_code_(exit_code) {}
  [[nodiscard]] int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

template <typename... Args>
[[noreturn]] void fail(int exit_code, fmt::format_string<Args...> format, Args&&... args) {
  throw LaunchError(exit_code, fmt::format(format, std::forward<Args>(args)...));
}

// The text of errno for a failed system call; read errno before anything can change it.
inline std::string errno_text(int error = errno) {
  return std::strerror(error);
}

}  // namespace gimlet::oshrun

#endif
