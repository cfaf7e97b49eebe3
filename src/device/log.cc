// SPDX-License-Identifier: BSD-3-Clause
#include "device/log.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>

namespace gimlet::log {
namespace {

std::atomic<bool> debug_on{false};
std::mutex label_mutex;

std::string& label_text() {
  static std::string text;
  return text;
}

std::string prefix() {
  const std::scoped_lock lock(label_mutex);
  return label_text().empty() ? std::string("gimlet: ") : "gimlet: " + label_text() + ": ";
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

void set_label(std::string_view label) {
  const std::scoped_lock lock(label_mutex);
  label_text() = label;
}

void enable_debug(bool on) {
  debug_on.store(on, std::memory_order_relaxed);
}
bool debug_enabled() {
  return debug_on.load(std::memory_order_relaxed);
}

void write(Level level, std::string_view sentence) {
  std::string line = prefix() + level_name(level);
  line += sentence;
  line += '\n';
  // Nothing sensible can be done when standard error itself is gone.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace gimlet::log
