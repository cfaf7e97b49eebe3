// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_LOG_H
#define GIMLET_DEVICE_LOG_H

#include <fmt/format.h>

#include <string_view>
#include <utility>

/// One sentence a line on standard error, written by a single write(2) so that PEs do not mix
/// lines:
///   gimlet: PE 3: error: ...
namespace gimlet::log {

enum class Level : unsigned char { kError, kWarning, kInfo, kDebug };

/// What stands behind "gimlet: " in every line, for example "PE 3". Set once, when the PE knows its
/// number.
void set_label(std::string_view label);
/// Debug lines are printed only when switched on (SHMEM_DEBUG).
void enable_debug(bool on);
bool debug_enabled();
void write(Level level, std::string_view sentence);
/// The same for signal handlers.
void write_in_handler(Level level, std::string_view sentence);

template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (debug_enabled()) write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace gimlet::log

#endif
