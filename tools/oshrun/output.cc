// SPDX-License-Identifier: BSD-3-Clause
#include "output.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace gimlet::oshrun {
namespace {

constexpr std::chrono::milliseconds kLineWait(50);
constexpr std::size_t kLongLine = 1 << 16;  // passed on in pieces of about this size

// One owner number for each stream of each PE.
int owner_of(int pe, Stream stream) {
  return 2 * pe + (stream == Stream::kErr ? 1 : 0);
}

}  // namespace

OutputForwarder::OutputForwarder(bool is_tagged, bool is_shared)
    : is_tagged_(is_tagged), is_shared_(is_shared), out_(STDOUT_FILENO), err_(STDERR_FILENO) {}

void OutputForwarder::add(int pe, Stream stream, UniqueFd fd) {
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  sources_.push_back({pe, stream, std::move(fd), {}, {}});
}

void OutputForwarder::say(const std::string& sentence) {
  if (err_.open_line_owner() != OutputSink::kNobody) err_.append("\n");
  err_.append(fmt::format("oshrun: {}\n", sentence));
  err_.set_open_line_owner(OutputSink::kNobody);
  err_.write_some();
}

void OutputForwarder::watch(PollSet& set) {
  for (Source& source : sources_) {
    if (sink_of(source).is_full()) continue;  // the PE then waits in its write, as for any reader
    set.watch(source.fd.get(), POLLIN, [this, &source] { read_from(source); });
  }
  for (OutputSink* sink : {&out_, &err_}) {
    if (sink->has_pending()) set.watch(sink->fd(), POLLOUT, [sink] { sink->write_some(); });
  }
}

std::optional<Clock::time_point> OutputForwarder::deadline() const {
  std::optional<Clock::time_point> first;
  for (const Source& source : sources_) {
    if (!source.begun_line.empty()) first = earlier(first, source.begun_at + kLineWait);
  }
  return first;
}

void OutputForwarder::after_wait() {
  const Clock::time_point now = Clock::now();
  for (Source& source : sources_) {
    if (source.begun_line.empty() || now < source.begun_at + kLineWait) continue;
    pass_on(source, source.begun_line);
    source.begun_line.clear();
  }
  std::erase_if(sources_, [](const Source& source) { return source.is_closed; });
}

void OutputForwarder::close_sources() {
  for (Source& source : sources_) {
    // What is in the pipe already was written before the end. Bounded: somebody who escaped the
    // PE's process group may be writing for ever.
    for (int i = 0; i < 64 && !source.is_closed && read_from(source); ++i) {
    }
    if (!source.is_closed) close(source);
  }
  sources_.clear();
}

bool OutputForwarder::read_from(Source& source) {
  std::array<char, 1 << 16> buffer;
  const ssize_t size = read(source.fd.get(), buffer.data(), buffer.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size <= 0) {  // EIO from a terminal whose other side is closed is its end of file
    close(source);
    return false;
  }
  const std::string_view text(buffer.data(), static_cast<std::size_t>(size));
  const std::size_t newline = is_shared_ ? text.rfind('\n') : text.size() - 1;
  if (newline != std::string_view::npos) {
    source.begun_line += text.substr(0, newline + 1);
    pass_on(source, source.begun_line);
    source.begun_line = text.substr(newline + 1);
  } else {
    source.begun_line += text;
  }
  source.begun_at = Clock::now();
  if (source.begun_line.size() >= kLongLine) {
    pass_on(source, source.begun_line);
    source.begun_line.clear();
  }
  return true;
}

void OutputForwarder::pass_on(Source& source, std::string_view text) {
  OutputSink& sink = sink_of(source);
  if (text.empty()) return;
  if (is_tagged_) {
    pass_on_tagged(source, text);
  } else {
    sink.append(text);
  }
  sink.set_open_line_owner(text.back() == '\n' ? OutputSink::kNobody
                                               : owner_of(source.pe, source.stream));
  sink.write_some();
}

void OutputForwarder::pass_on_tagged(Source& source, std::string_view text) {
  OutputSink& sink = sink_of(source);
  const int owner = owner_of(source.pe, source.stream);
  const bool continues = sink.open_line_owner() == owner;
  if (!continues && sink.open_line_owner() != OutputSink::kNobody) sink.append("\n");
  const std::string tag =
      fmt::format("[{}]<{}>: ", source.pe, source.stream == Stream::kOut ? "stdout" : "stderr");
  for (bool is_first = true; !text.empty(); is_first = false) {
    const std::size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    if (!is_first || !continues) sink.append(tag);
    sink.append(text.substr(0, size));
    text.remove_prefix(size);
  }
}

void OutputForwarder::close(Source& source) {
  pass_on(source, source.begun_line);
  source.begun_line.clear();
  OutputSink& sink = sink_of(source);
  if (is_tagged_ && sink.open_line_owner() == owner_of(source.pe, source.stream)) {
    sink.append("\n");
    sink.set_open_line_owner(OutputSink::kNobody);
    sink.write_some();
  }
  source.fd.reset();
  source.is_closed = true;
}

}  // namespace gimlet::oshrun
