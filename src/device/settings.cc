// SPDX-License-Identifier: BSD-3-Clause
#include "device/settings.h"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "device/log.h"

extern char** environ;

namespace gimlet::device {
namespace {

constexpr std::string_view kStandardPrefix = "SHMEM_";
constexpr std::string_view kOldPrefix = "SMA_";

struct Found {
  std::string name;  // the name that was set, SHMEM_X or SMA_X
  const char* value;
};

std::optional<Found> find_value(std::string_view name) {
  if (const char* value = std::getenv(std::string(name).c_str()))
    return Found{std::string(name), value};
  if (!name.starts_with(kStandardPrefix)) return std::nullopt;
  std::string old(kOldPrefix);
  old += name.substr(kStandardPrefix.size());
  if (const char* value = std::getenv(old.c_str())) return Found{old, value};
  return std::nullopt;
}

/// Digits with at most one point, no sign, no exponent: what the standard calls an integer or
/// decimal fraction. Returns the characters used, 0 when there is no number.
std::size_t decimal_length(std::string_view text) {
  std::size_t i = 0;
  std::size_t digits = 0;
  bool point = false;
  for (; i < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      ++digits;
    } else if (text[i] == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  return digits == 0 ? 0 : i;
}

std::optional<double> parse_decimal(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> unit_factor(std::string_view rest) {
  if (rest.empty()) return 1.0;
  switch (rest.front()) {  // the standard ignores what follows the suffix
    case 'k':
    case 'K':
      return 0x1p10;
    case 'm':
    case 'M':
      return 0x1p20;
    case 'g':
    case 'G':
      return 0x1p30;
    case 't':
    case 'T':
      return 0x1p40;
    default:
      return std::nullopt;
  }
}

bool parse_bytes(std::string_view text, std::uint64_t& out) {
  const std::size_t length = decimal_length(text);
  if (length == 0) return false;
  const auto number = parse_decimal(text.substr(0, length));
  const auto factor = unit_factor(text.substr(length));
  if (!number || !factor) return false;
  const double bytes = std::ceil(*number * *factor);
  if (!(bytes < 0x1p56)) return false;
  out = static_cast<std::uint64_t>(bytes);
  return true;
}

bool parse_seconds(std::string_view text, double& out) {
  if (decimal_length(text) != text.size()) return false;
  const auto number = parse_decimal(text);
  if (!number || *number > 1e9) return false;
  out = *number;
  return true;
}

bool parse_count(std::string_view text, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() &&
         out <= 1u << 20;
}

bool is_listed(std::string_view word, std::string_view list) {
  while (!list.empty()) {
    const std::size_t bar = list.find('|');
    if (list.substr(0, bar) == word) return true;
    if (bar == std::string_view::npos) return false;
    list.remove_prefix(bar + 1);
  }
  return false;
}

bool parse(SettingType type, const char* allowed, std::string_view text, void* out) {
  switch (type) {
    case SettingType::kBytes:
      return parse_bytes(text, *static_cast<std::uint64_t*>(out));
    case SettingType::kSeconds:
      return parse_seconds(text, *static_cast<double*>(out));
    case SettingType::kPositiveSeconds:
      return parse_seconds(text, *static_cast<double*>(out)) && *static_cast<double*>(out) > 0;
    case SettingType::kCount:
      return parse_count(text, *static_cast<std::uint64_t*>(out));
    case SettingType::kPresence:
      *static_cast<bool*>(out) = true;
      return true;
    case SettingType::kChoice:
      if (!is_listed(text, allowed)) return false;
      *static_cast<std::string*>(out) = text;
      return true;
  }
  return false;
}

std::string readable_list(const SettingInfo& info) {
  std::string text = info.allowed;
  if (info.type != SettingType::kChoice) return text;
  for (std::size_t bar = text.find('|'); bar != std::string::npos; bar = text.find('|', bar)) {
    text.replace(bar, 1, " or ");
  }
  return text;
}

Status load_one(const SettingInfo& info, void* out) {
  if (*info.fallback != '\0' && !parse(info.type, info.allowed, info.fallback, out)) {
    return fail(Code::kInternal, "the default {} of {} does not parse", info.fallback, info.name);
  }
  const auto found = find_value(info.name);
  if (!found || parse(info.type, info.allowed, found->value, out)) return {};
  return fail(Code::kInvalidArgument, "{} is set to '{}'; allowed is {}", found->name, found->value,
              readable_list(info));
}

std::vector<std::string> unknown_names() {
  std::vector<std::string> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("GIMLET_") && !name.starts_with("GIN_")) continue;
    // Set by our own launcher, for its own children or for itself, and by the tests.
    if (name == "GIMLET_LAUNCHER" || name.starts_with("GIMLET_OSHRUN_")) continue;
    if (name.starts_with("GIMLET_TEST_")) continue;
    bool known = false;
    for (const SettingInfo& info : setting_table()) known = known || name == info.name;
    if (!known) unknown.emplace_back(name);
  }
  return unknown;
}

}  // namespace

const std::vector<SettingInfo>& setting_table() {
  static const std::vector<SettingInfo> table = {
#define SETTING(name, member, kind, fallback, allowed, sentence) \
  {#name, SettingType::kind, fallback, allowed, sentence},
#include "device/settings.def"
#undef SETTING
  };
  return table;
}

Status load_settings(Settings& settings, std::vector<std::string>& unknown) {
  const SettingInfo* info = setting_table().data();
#define SETTING(name, member, kind, fallback, allowed, sentence) \
  GIMLET_TRY(load_one(*info++, &settings.member));
#include "device/settings.def"
#undef SETTING
  unknown = unknown_names();
  return {};
}

const Settings& settings() {
  static const Settings values = [] {
    Settings fresh;
    std::vector<std::string> unknown;
    if (const Status status = load_settings(fresh, unknown); !status.ok()) {
      log::error("{}", status.message());
      ::_exit(EXIT_FAILURE);
    }
    for (const std::string& name : unknown)
      log::warning("{} is not a setting of Gimlet; see gimlet(7)", name);
    log::enable_debug(fresh.debug);
    return fresh;
  }();
  return values;
}

std::string setting_text(const SettingInfo& info) {
  const auto found = find_value(info.name);
  if (found) return info.type == SettingType::kPresence ? "on" : found->value;
  return *info.fallback == '\0' ? "off" : info.fallback;
}

}  // namespace gimlet::device
