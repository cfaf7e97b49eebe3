// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_UNIT_CHILD_H
#define GIMLET_TESTS_UNIT_CHILD_H

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace gimlet::tests {

/// Runs `body` in a process of its own, which ends well when it returns true.
template <class Body>
pid_t in_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  return child;
}

inline bool ended_well(pid_t child) {
  if (child < 0) return false;  // there was none
  int status = -1;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace gimlet::tests

#endif
