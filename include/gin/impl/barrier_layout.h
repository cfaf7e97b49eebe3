// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_BARRIER_LAYOUT_H
#define GIMLET_GIN_IMPL_BARRIER_LAYOUT_H

#include <stdint.h>

#include "gin/platform.h"

/// Signals of one barrier, the same for the library that reserves them and the kernels that use
/// them.
namespace gin {
namespace impl {

constexpr int kAllToAllRanks = 32;

/// Rounds of a dissemination barrier: ceil(log2 ranks).
GIN_HOST_DEVICE_INLINE constexpr uint32_t dissemination_rounds(int ranks) {
  uint32_t rounds = 0;
  while ((1ll << rounds) < ranks) ++rounds;
  return rounds;
}

/// All to all: two words for each rank of the team. Dissemination: two for each round, which only
/// one rank ever adds to. Barriers take the two in turn: a rank that has left a barrier may be
/// heard in the next one before it is heard in that one, since weak signals overtake.
GIN_HOST_DEVICE_INLINE constexpr uint32_t barrier_words(int ranks) {
  return 2 * (ranks <= kAllToAllRanks ? static_cast<uint32_t>(ranks) : dissemination_rounds(ranks));
}

/// From one barrier to the next: one more word, whose shadow is the coop's scratch, and whole cache
/// lines, so that blocks that meet at the same time do not share any.
GIN_HOST_DEVICE_INLINE constexpr uint32_t barrier_pitch(int ranks) {
  return (barrier_words(ranks) + 1 + 7) / 8 * 8;
}

}  // namespace impl
}  // namespace gin

#endif
