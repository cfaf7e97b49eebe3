/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GIMLET_GIN_TEAM_H
#define GIMLET_GIN_TEAM_H

#include <stdbool.h>

#include "gin/dev_comm.h"

#ifdef __cplusplus
#include "gin/platform.h"
#else
#define GIN_HOST_DEVICE_INLINE static inline
#endif

/// A strided subset of the ranks, seen from the calling rank: member r is world rank
/// `my world rank + (r - rank) * stride`.
typedef struct ginTeam {
  int nRanks;
  int rank;
  int stride;
} ginTeam;
typedef ginTeam ginTeam_t;

/// Members of `parent` in groups of innerSize consecutive ones: the group of the caller.
GIN_HOST_DEVICE_INLINE ginTeam_t ginTeamInnerFactor(ginTeam_t parent, int innerSize) {
  ginTeam_t team = {innerSize, parent.rank % innerSize, parent.stride};
  return team;
}

/// The members of `parent` that have the caller's place in their groups of innerSize.
GIN_HOST_DEVICE_INLINE ginTeam_t ginTeamOuterFactor(ginTeam_t parent, int innerSize) {
  ginTeam_t team = {parent.nRanks / innerSize, parent.rank / innerSize, parent.stride * innerSize};
  return team;
}

/// Is rank bPeer of team b a member of team a?
GIN_HOST_DEVICE_INLINE bool ginTeamRankIsMember(ginTeam_t a, ginTeam_t b, int bPeer) {
  const int delta = (bPeer - b.rank) * b.stride;
  const int place = a.rank + delta / a.stride;
  return delta % a.stride == 0 && 0 <= place && place < a.nRanks;
}

/// Number in team a of rank bPeer of team b, which must be a member of both.
GIN_HOST_DEVICE_INLINE int ginTeamRankToTeam(ginTeam_t a, ginTeam_t b, int bPeer) {
  return a.rank + (bPeer - b.rank) * b.stride / a.stride;
}

/// Number in `parent` of the index-th member of `parent` that is not in `subset`, whose members
/// must all be in `parent`.
GIN_HOST_DEVICE_INLINE int ginTeamRankInDifference(ginTeam_t parent, ginTeam_t subset, int index) {
  const int step = subset.stride / parent.stride; /* between members of subset, in parent numbers */
  const int first = parent.rank - subset.rank * step;
  const int last = first + (subset.nRanks - 1) * step;
  const int low = step < 0 ? last : first;
  const int high = step < 0 ? first : last;
  const int gap = (step < 0 ? -step : step) - 1; /* outsiders between two members */
  if (index < low) return index;
  const int between = gap * (subset.nRanks - 1);
  if (index - low >= between) return high + 1 + (index - low - between);
  return low + 1 + (index - low) / gap * (gap + 1) + (index - low) % gap;
}

#ifdef __cplusplus

/// Tags for constructors that name a team without building it.
struct ginTeamTagWorld {};
struct ginTeamTagLsa {};
struct ginTeamTagRail {};

/// All ranks.
GIN_HOST_DEVICE_INLINE ginTeam_t ginTeamWorld(ginDevComm const& comm) {
  return {comm.nRanks, comm.rank, 1};
}

/// Ranks whose memory loads and stores reach: consecutive world ranks, equally many for every rank.
GIN_HOST_DEVICE_INLINE ginTeam_t ginTeamLsa(ginDevComm const& comm) {
  return {comm.lsaSize, comm.lsaRank, 1};
}

/// Ranks with the same number in their load/store-accessible teams.
GIN_HOST_DEVICE_INLINE ginTeam_t ginTeamRail(ginDevComm const& comm) {
  return {comm.nRanks / comm.lsaSize, comm.rank / comm.lsaSize, comm.lsaSize};
}

GIN_HOST_DEVICE_INLINE int ginTeamRankToWorld(ginDevComm const& comm, ginTeam_t team, int rank) {
  return comm.rank + (rank - team.rank) * team.stride;
}

GIN_HOST_DEVICE_INLINE int ginTeamRankToLsa(ginDevComm const& comm, ginTeam_t team, int rank) {
  return comm.lsaRank + (rank - team.rank) * team.stride;
}

#endif

#endif
