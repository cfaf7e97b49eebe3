// SPDX-License-Identifier: BSD-3-Clause
#include "device/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>

namespace gimlet::log {
namespace {

constexpr std::string_view kName = "gimlet: ";

std::atomic<bool> debug_on{false};
std::mutex label_mutex;

// Fixed storage, so that a signal handler may read it.
constinit std::array<char, 64> label{};
constinit std::atomic<std::size_t> label_bytes{0};

std::string_view label_text() {
  return {label.data(), label_bytes.load(std::memory_order_acquire)};
}

const char* level_name(Level level) {
  switch (level) {
    case Level::kError:
      return "error: ";
    case Level::kWarning:
      return "warning: ";
    case Level::kInfo:
      return "";
    case Level::kDebug:
      return "debug: ";
  }
  return "";
}

}  // namespace

void set_label(std::string_view text) {
  const std::scoped_lock lock(label_mutex);
  label_bytes.store(0, std::memory_order_release);
  const std::size_t bytes = std::min(text.size(), label.size());
  std::copy_n(text.data(), bytes, label.data());
  label_bytes.store(bytes, std::memory_order_release);
}

void enable_debug(bool on) {
  debug_on.store(on, std::memory_order_relaxed);
}
bool debug_enabled() {
  return debug_on.load(std::memory_order_relaxed);
}

void write(Level level, std::string_view sentence) {
  std::string line(kName);
  {
    const std::scoped_lock lock(label_mutex);
    line += label_text();
  }
  if (line.size() > kName.size()) line += ": ";
  line += level_name(level);
  line += sentence;
  line += '\n';
  // Nothing sensible can be done when standard error itself is gone.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void write_in_handler(Level level, std::string_view sentence) {
  std::array<char, 1024> line;
  std::size_t size = 0;
  const std::string_view text = label_text();
  for (const std::string_view part :
       {kName, text, std::string_view(text.empty() ? "" : ": "),
        std::string_view(level_name(level)), sentence, std::string_view("\n")}) {
    const std::size_t bytes = std::min(part.size(), line.size() - size);
    std::copy_n(part.data(), bytes, line.data() + size);
    size += bytes;
  }
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), size);
}

}  // namespace gimlet::log
