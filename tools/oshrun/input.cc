// SPDX-License-Identifier: BSD-3-Clause
#include "input.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace gimlet::oshrun {

namespace {

// In the background reading would stop the launcher; SIGCONT, sent by `fg`, starts a new round. A
// terminal that does not control the launcher (-1) stops nobody.
bool may_read_terminal() {
  const pid_t foreground = tcgetpgrp(STDIN_FILENO);
  return foreground == getpgrp() || foreground == -1;
}

}  // namespace

TerminalInput::TerminalInput(UniqueFd to) : to_(std::move(to)), has_ended_(false) {
  fcntl(to_.get(), F_SETFL, O_NONBLOCK);
}

void TerminalInput::watch(PollSet& set) {
  if (!to_.valid()) return;
  if (!pending_.empty()) {
    set.watch(to_.get(), POLLOUT, [this] { write_some(); });
  } else if (has_ended_) {
    to_.reset();
  } else if (may_read_terminal()) {
    set.watch(STDIN_FILENO, POLLIN, [this] { read_some(); });
  }
}

void TerminalInput::read_some() {
  std::array<char, 4096> buffer;
  const ssize_t size = read(STDIN_FILENO, buffer.data(), buffer.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    has_ended_ = true;
    return;
  }
  pending_.assign(buffer.data(), static_cast<std::size_t>(size));
  write_some();
}

void TerminalInput::write_some() {
  const ssize_t size = write(to_.get(), pending_.data(), pending_.size());
  if (size >= 0) {
    pending_.erase(0, static_cast<std::size_t>(size));
  } else if (errno != EAGAIN && errno != EINTR) {
    to_.reset();  // the PE no longer reads
  }
}

}  // namespace gimlet::oshrun
