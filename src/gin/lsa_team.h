// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_LSA_TEAM_H
#define GIMLET_GIN_LSA_TEAM_H

#include <cstdint>
#include <span>

namespace gimlet::gin {

/// Consecutive ranks around one rank whose memory it can map, as that rank sees it.
struct Run {
  std::int32_t first;
  std::int32_t size;
};

/// Size of the load/store-accessible teams when rank r sees runs[r]: the largest number that
/// divides every run, so that teams are equal and aligned, and is at most `limit` (0: no limit).
/// One when the ranks' views contradict each other.
int lsa_team_size(std::span<const Run> runs, std::uint64_t limit);

}  // namespace gimlet::gin

#endif
