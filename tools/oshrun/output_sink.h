// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_OUTPUT_SINK_H
#define GIMLET_TOOLS_OSHRUN_OUTPUT_SINK_H

#include <string>
#include <string_view>

namespace gimlet::oshrun {

// The launcher's standard output or error: takes text at once, writes it as fast as the reader
// lets it, and never waits for the reader.
class OutputSink {
 public:
  static constexpr int kNobody = -1;

  explicit OutputSink(int fd);

  void append(std::string_view text);
  // Who wrote the beginning of a line whose end is still to come.
  [[nodiscard]] int open_line_owner() const { return open_line_owner_; }
  void set_open_line_owner(int owner) { open_line_owner_ = owner; }

  // Writes what the reader takes without waiting for it.
  void write_some();

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool has_pending() const { return !is_broken() && written_ < pending_.size(); }
  // Full: whoever fills it should pause.
  [[nodiscard]] bool is_full() const { return pending_.size() - written_ >= kFullBytes; }
  // errno of the write that failed for good; text is discarded from then on.
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] bool is_broken() const { return error_ != 0; }

 private:
  static constexpr std::size_t kFullBytes = 1 << 20;

  [[nodiscard]] bool takes_more() const;

  int fd_;
  bool is_file_;
  int error_ = 0;
  int open_line_owner_ = kNobody;
  std::string pending_;
  std::size_t written_ = 0;  // of pending_
};

}  // namespace gimlet::oshrun

#endif
