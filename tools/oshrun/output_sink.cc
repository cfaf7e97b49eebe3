// SPDX-License-Identifier: BSD-3-Clause
#include "output_sink.h"

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gimlet::oshrun {
namespace {

bool is_regular_file(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

OutputSink::OutputSink(int fd) : fd_(fd), is_file_(is_regular_file(fd)) {}

void OutputSink::append(std::string_view text) {
  if (!is_broken()) pending_ += text;
}

bool OutputSink::takes_more() const {
  pollfd descriptor{fd_, POLLOUT, 0};
  return poll(&descriptor, 1, 0) > 0;
}

void OutputSink::write_some() {
  // The descriptor is shared with other programs, so it can't be made non-blocking. A pipe that
  // polls writable takes PIPE_BUF bytes at once.
  const std::size_t most = is_file_ ? kFullBytes : PIPE_BUF;
  for (int round = 0; round < 16 && has_pending() && takes_more(); ++round) {
    const std::size_t size = std::min(most, pending_.size() - written_);
    const ssize_t taken = write(fd_, pending_.data() + written_, size);
    if (taken < 0) {
      if (errno != EINTR && errno != EAGAIN) error_ = errno;
      break;
    }
    written_ += static_cast<std::size_t>(taken);
  }
  if (is_broken() || written_ == pending_.size()) {
    pending_.clear();
    written_ = 0;
  } else if (written_ > kFullBytes) {
    pending_.erase(0, written_);
    written_ = 0;
  }
}

}  // namespace gimlet::oshrun
