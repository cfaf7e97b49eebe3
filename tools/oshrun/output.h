// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_OUTPUT_H
#define GIMLET_TOOLS_OSHRUN_OUTPUT_H

#include <deque>
#include <optional>
#include <string>

#include "device/unique_fd.h"
#include "output_sink.h"
#include "poll_set.h"

namespace gimlet::oshrun {

enum class Stream { kOut, kErr };

// Passes on what the PEs write, by whole lines, so that lines of several PEs do not mix. A line
// that does not end within a moment (a prompt) is passed on as it is.
class OutputForwarder {
 public:
  // is_shared: several PEs write, so lines are worth waiting for.
  OutputForwarder(bool is_tagged, bool is_shared);

  // Reads fd, the launcher's end of what the PE writes to that stream.
  void add(int pe, Stream stream, UniqueFd fd);

  // The launcher's own sentence, on a line of its own on standard error.
  void say(const std::string& sentence);

  void watch(PollSet& set);
  // When a begun line has been waited for long enough.
  [[nodiscard]] std::optional<Clock::time_point> deadline() const;
  // Passes such lines on and forgets streams that ended. Once after each PollSet::wait.
  void after_wait();
  // Stops reading: passes on the begun lines and closes the PEs' streams.
  void close_sources();

  [[nodiscard]] bool has_sources() const { return !sources_.empty(); }
  [[nodiscard]] bool has_pending() const { return out_.has_pending() || err_.has_pending(); }
  // errno of a failed write to the launcher's standard output, or 0.
  [[nodiscard]] int error() const { return out_.error(); }

 private:
  struct Source {
    int pe;
    Stream stream;
    UniqueFd fd;
    std::string begun_line;
    Clock::time_point begun_at;
    bool is_closed = false;
  };

  OutputSink& sink_of(const Source& source) { return source.stream == Stream::kOut ? out_ : err_; }
  // False when there was nothing to read, now or for ever.
  bool read_from(Source& source);
  void pass_on(Source& source, std::string_view text);
  void pass_on_tagged(Source& source, std::string_view text);
  void close(Source& source);

  const bool is_tagged_;
  const bool is_shared_;
  OutputSink out_;
  OutputSink err_;
  std::deque<Source> sources_;
};

}  // namespace gimlet::oshrun

#endif
