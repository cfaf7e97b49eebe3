// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_COOP_H
#define GIMLET_GIN_COOP_H

#include <stdint.h>

#include "gin/platform.h"

/// The threads that make one call of gin::Context or gin::BarrierSession together.
///
/// Any type with thread_rank(), size() and sync() will do, those of CUDA's cooperative_groups
/// included. All threads of a coop make the call, with the same arguments; it synchronises them at
/// entry and exit, and sync() orders their memory accesses.
namespace gin {

/// N consecutive lanes of a warp, aligned to N: 1, 2, 4, 8, 16 or 32.
template <int N>
class CoopTile {
  static_assert(N == 1 || N == 2 || N == 4 || N == 8 || N == 16 || N == 32,
                "a tile has 1, 2, 4, 8, 16 or 32 lanes");

 public:
  GIN_DEVICE_INLINE int thread_rank() const;
  GIN_DEVICE_INLINE constexpr int size() const { return N; }
  GIN_DEVICE_INLINE constexpr int num_threads() const { return N; }
  GIN_DEVICE_INLINE uint32_t laneMask() const;
  GIN_DEVICE_INLINE void sync() const;
};
using CoopThread = CoopTile<1>;
using CoopWarp = CoopTile<32>;

/// The lanes of a warp that a mask names; the caller is one of them.
struct CoopLanes {
  uint32_t lmask = ~0u;

  GIN_DEVICE_INLINE int thread_rank() const;
  GIN_DEVICE_INLINE int size() const;
  GIN_DEVICE_INLINE int num_threads() const { return size(); }
  GIN_DEVICE_INLINE uint32_t laneMask() const { return lmask; }
  GIN_DEVICE_INLINE void sync() const;
};

/// nWarps consecutive warps of the block from warp0 on, the caller's among them. The id, 0 to 14,
/// tells spans that are in use at the same time apart.
class CoopWarpSpan {
 public:
  GIN_DEVICE_INLINE CoopWarpSpan(int warp0, int nWarps, int id);
  GIN_DEVICE_INLINE int thread_rank() const;
  GIN_DEVICE_INLINE int size() const { return 32 * n_warps_; }
  GIN_DEVICE_INLINE int num_threads() const { return size(); }
  GIN_DEVICE_INLINE void sync() const;

 private:
  uint16_t warp0_;
  uint16_t n_warps_;
  uint32_t id_;
};

/// The whole block, which has one dimension.
class CoopCta {
 public:
  GIN_DEVICE_INLINE int thread_rank() const;
  GIN_DEVICE_INLINE int size() const;
  GIN_DEVICE_INLINE int num_threads() const { return size(); }
  GIN_DEVICE_INLINE void sync() const;
};

}  // namespace gin

#include "gin/impl/coop.h"

#endif
