// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_DEVICE_H
#define GIMLET_GIN_IMPL_DEVICE_H

#include <stdint.h>

#include "gin/platform.h"

#ifndef __CUDACC__
#include "gin/impl/exec.h"
#endif

/// Who runs, and how threads of a block meet: the GPU's own instructions under nvcc, the executor's
/// calls on a CPU.
namespace gin {
namespace impl {

#ifdef __CUDACC__

GIN_DEVICE_INLINE uint32_t thread_index() {
  return threadIdx.x;
}
GIN_DEVICE_INLINE uint32_t block_threads() {
  return blockDim.x;
}
GIN_DEVICE_INLINE void sync_block() {
  __syncthreads();
}
GIN_DEVICE_INLINE void sync_warp(uint32_t mask) {
  __syncwarp(mask);
}
GIN_DEVICE_INLINE void sync_named(uint32_t id, uint32_t threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
GIN_DEVICE_INLINE int count_bits(uint32_t word) {
  return __popc(word);
}

#else

GIN_DEVICE_INLINE uint32_t thread_index() {
  return gin_exec_here()->rank;
}
GIN_DEVICE_INLINE uint32_t block_threads() {
  return gin_exec_here()->size;
}
GIN_DEVICE_INLINE void sync_block() {
  gin_exec_sync_block();
}
GIN_DEVICE_INLINE void sync_warp(uint32_t mask) {
  gin_exec_sync_warp(mask);
}
GIN_DEVICE_INLINE void sync_named(uint32_t id, uint32_t threads) {
  gin_exec_sync_named(id, threads);
}
GIN_DEVICE_INLINE int count_bits(uint32_t word) {
  return __builtin_popcount(word);
}

#endif

GIN_DEVICE_INLINE uint32_t lane_index() {
  return thread_index() % 32;
}

/// Lanes of the caller's warp that exist: the last warp of a block may be partial.
GIN_DEVICE_INLINE uint32_t existing_lanes() {
  const uint32_t first = thread_index() / 32 * 32;
  const uint32_t lanes = block_threads() - first;
  return lanes >= 32 ? ~0u : (1u << lanes) - 1;
}

}  // namespace impl
}  // namespace gin

#endif
