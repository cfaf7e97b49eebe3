// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_COOP_H
#define GIMLET_GIN_IMPL_COOP_H

#include "gin/impl/device.h"

namespace gin {

template <int N>
GIN_DEVICE_INLINE int CoopTile<N>::thread_rank() const {
  return N == 1 ? 0 : static_cast<int>(impl::lane_index() % N);
}

template <int N>
GIN_DEVICE_INLINE uint32_t CoopTile<N>::laneMask() const {
  const uint32_t lane = impl::lane_index();
  return (~0u >> (32 - N)) << (lane - lane % N);
}

template <int N>
GIN_DEVICE_INLINE void CoopTile<N>::sync() const {
  if (N > 1) impl::sync_warp(laneMask() & impl::existing_lanes());
}

GIN_DEVICE_INLINE int CoopLanes::thread_rank() const {
  return impl::count_bits(lmask & ((1u << impl::lane_index()) - 1));
}

GIN_DEVICE_INLINE int CoopLanes::size() const {
  return impl::count_bits(lmask & impl::existing_lanes());
}

GIN_DEVICE_INLINE void CoopLanes::sync() const {
  impl::sync_warp(lmask & impl::existing_lanes());
}

GIN_DEVICE_INLINE CoopWarpSpan::CoopWarpSpan(int warp0, int nWarps, int id)
    : warp0_(static_cast<uint16_t>(warp0)),
      n_warps_(static_cast<uint16_t>(nWarps)),
      id_(static_cast<uint32_t>(id)) {}

GIN_DEVICE_INLINE int CoopWarpSpan::thread_rank() const {
  return static_cast<int>(impl::thread_index()) - 32 * warp0_;
}

// Hardware barrier 0 is that of the block.
GIN_DEVICE_INLINE void CoopWarpSpan::sync() const {
  impl::sync_named(1 + id_, 32u * n_warps_);
}

GIN_DEVICE_INLINE int CoopCta::thread_rank() const {
  return static_cast<int>(impl::thread_index());
}

GIN_DEVICE_INLINE int CoopCta::size() const {
  return static_cast<int>(impl::block_threads());
}

GIN_DEVICE_INLINE void CoopCta::sync() const {
  impl::sync_block();
}

namespace impl {

/// The caller's part of work that a coop shares. Lanes that a partial warp lacks get none.
struct Share {
  uint32_t index;
  uint32_t count;
};

template <class Coop>
GIN_DEVICE_INLINE Share share_of(Coop const& coop) {
  return {static_cast<uint32_t>(coop.thread_rank()), static_cast<uint32_t>(coop.size())};
}

template <int N>
GIN_DEVICE_INLINE Share share_of(CoopTile<N> const& tile) {
  if (N == 1) return {0, 1};
  return {static_cast<uint32_t>(tile.thread_rank()),
          static_cast<uint32_t>(count_bits(tile.laneMask() & existing_lanes()))};
}

GIN_DEVICE_INLINE Share share_of(CoopWarpSpan const& span) {
  const uint32_t first = thread_index() - static_cast<uint32_t>(span.thread_rank());
  const uint32_t left = block_threads() - first;
  const uint32_t wanted = static_cast<uint32_t>(span.size());
  return {thread_index() - first, wanted < left ? wanted : left};
}

}  // namespace impl
}  // namespace gin

#endif
