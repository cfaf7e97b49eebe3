// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_SETTINGS_H
#define GIMLET_DEVICE_SETTINGS_H

#include <cstdint>
#include <string>
#include <vector>

#include "device/status.h"

/// Settings come from the environment, are declared once in settings.def, and are read once.
namespace gimlet::device {

enum class SettingType : unsigned char {
  kBytes,
  kSeconds,
  kPositiveSeconds,
  kCount,
  kPresence,
  kChoice
};

template <SettingType>
struct SettingValue;
template <>
struct SettingValue<SettingType::kBytes> {
  using type = std::uint64_t;
};
template <>
struct SettingValue<SettingType::kSeconds> {
  using type = double;
};
template <>
struct SettingValue<SettingType::kPositiveSeconds> {
  using type = double;
};
template <>
struct SettingValue<SettingType::kCount> {
  using type = std::uint64_t;
};
template <>
struct SettingValue<SettingType::kPresence> {
  using type = bool;
};
template <>
struct SettingValue<SettingType::kChoice> {
  using type = std::string;
};

struct Settings {
#define SETTING(name, member, kind, fallback, allowed, sentence) \
  SettingValue<SettingType::kind>::type member{};
#include "device/settings.def"
#undef SETTING
};

struct SettingInfo {
  const char* name;
  SettingType type;
  const char* fallback;
  const char* allowed;
  const char* sentence;
};

/// The table, in the order of settings.def.
const std::vector<SettingInfo>& setting_table();

/// Reads the environment. A value that does not parse fails with name, value and what is allowed.
/// Unknown names that start with GIMLET_ or GIN_ are returned in `unknown`.
Status load_settings(Settings& settings, std::vector<std::string>& unknown);

/// The settings of this process: read on first use; a value that does not parse ends the process
/// with one sentence, an unknown name of ours warns once.
const Settings& settings();

/// The value in force, as text (for SHMEM_INFO).
std::string setting_text(const SettingInfo& info);

}  // namespace gimlet::device

#endif
