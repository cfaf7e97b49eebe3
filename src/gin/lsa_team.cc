// SPDX-License-Identifier: BSD-3-Clause
#include "gin/lsa_team.h"

#include <numeric>

namespace gimlet::gin {
namespace {

bool agree(std::span<const Run> runs) {
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const auto first = static_cast<std::size_t>(runs[r].first);
    const auto size = static_cast<std::size_t>(runs[r].size);
    if (r < first || r - first >= size || first + size > runs.size()) return false;
    if (runs[first].first != runs[r].first || runs[first].size != runs[r].size) return false;
  }
  return true;
}

}  // namespace

int lsa_team_size(std::span<const Run> runs, std::uint64_t limit) {
  if (!agree(runs)) return 1;
  int common = 0;
  for (const Run& run : runs) common = std::gcd(common, run.size);
  if (limit == 0 || limit >= static_cast<std::uint64_t>(common)) return common;
  int size = static_cast<int>(limit);
  while (common % size != 0) --size;
  return size;
}

}  // namespace gimlet::gin
