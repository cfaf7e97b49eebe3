// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PLATFORM_H
#define GIMLET_GIN_PLATFORM_H

/// The language that kernels are written in, for nvcc and for host compilers alike (C++17).
///
/// Under nvcc everything below is CUDA's own. With a host compiler the same names exist for kernels
/// that run on the CPU executor: __global__ and its kind, threadIdx, blockIdx, blockDim, gridDim,
/// warpSize, __syncthreads and its kind, __syncwarp, __shfl_*_sync, __ballot_sync, __any_sync,
/// __all_sync, __activemask, __threadfence*, __nanosleep, __trap, __popc and its kind, the atomic*
/// functions, dim3, uint3, cuda::memory_order_* and cuda::thread_scope_*.
///
/// What is different on the executor:
/// - A thread runs until it hands over. __syncthreads, __syncwarp, the warp exchanges, __nanosleep,
///   and, now and then, __threadfence* and atomic operations do so; a plain spin on a volatile
///   variable does not, and never ends if the awaited store comes from its own block.
/// - Each thread counts as converged with itself only: __activemask() is the caller's own lane.
/// - Shared memory is declared with GIN_SHARED and GIN_DYNAMIC_SHARED instead of __shared__.

#include <stddef.h>
#include <stdint.h>

#include "gin/result.h"

#if defined(__CUDACC__)
/// 1 when kernels of this translation unit run on the CPU executor, 0 when on a GPU.
#define GIN_EXECUTOR_KERNELS 0
#include "gin/impl/platform_cuda.h"
#else
#define GIN_EXECUTOR_KERNELS 1
#include "gin/impl/platform_executor.h"
#endif

/// GIN_DEVICE_INLINE: a function of kernels only. GIN_HOST_DEVICE_INLINE: of both sides.
///
/// GIN_SHARED(type, name): `type& name` in memory that the threads of the block share, for example
/// GIN_SHARED(float[32], tile). One declaration is one object a block, whoever passes it and how
/// often. Not initialised; at most 48 KiB a block. A type with a comma needs an alias first.
///
/// GIN_DYNAMIC_SHARED(name): `unsigned char name[]`, the shared_bytes of the launch, aligned to
/// 128.
///
/// gin::memory_order, gin::memory_order_*, gin::thread_scope, gin::thread_scope_* and
/// gin::atomic_ref<T, scope> are cuda::... under nvcc, and the same interface otherwise.

#endif
