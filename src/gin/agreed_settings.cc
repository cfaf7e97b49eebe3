// SPDX-License-Identifier: BSD-3-Clause
#include "gin/agreed_settings.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "device/settings.h"

namespace gimlet::gin {
namespace {

constexpr std::string_view kAgreed[] = {"GIN_PATH", "GIN_DIRECT_SPAN", "GIN_LSA_TEAM_SIZE",
                                        "GIN_REORDER", "GIN_STAGING"};
constexpr std::size_t kMostText = 24;  // longer values are compared and shown cut
using Text = std::array<char, kMostText>;
using Values = std::array<Text, std::size(kAgreed)>;

Values own_values() {
  Values values{};
  for (const device::SettingInfo& info : device::setting_table()) {
    const auto* const found = std::ranges::find(kAgreed, info.name);
    if (found == std::end(kAgreed)) continue;
    const std::string text = device::setting_text(info);
    Text& value = values[static_cast<std::size_t>(found - kAgreed)];
    std::memcpy(value.data(), text.data(), std::min(text.size(), kMostText - 1));
  }
  return values;
}

}  // namespace

Status check_agreed_settings(pgas::Group& group, const char* rank_word) {
  const Values own = own_values();
  std::vector<Values> all(static_cast<std::size_t>(group.size()));
  GIMLET_TRY(
      group.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all))));
  for (std::size_t s = 0; s < own.size(); ++s) {
    const auto other =
        std::ranges::find_if(all, [&](const Values& values) { return values[s] != all[0][s]; });
    if (other == all.end()) continue;
    return fail(Code::kInvalidUsage,
                "{} is {} on {} {} and {} on {} 0; it must be the same for all", kAgreed[s],
                (*other)[s].data(), rank_word, other - all.begin(), all[0][s].data(), rank_word);
  }
  return {};
}

}  // namespace gimlet::gin
