// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_LAUNCH_H
#define GIMLET_GIN_LAUNCH_H

/// Launching kernels, on a GPU under nvcc and on the CPU executor with a host compiler.
///
///   __global__ void scale(float* x, float by) { x[blockIdx.x * blockDim.x + threadIdx.x] *= by; }
///   gin::launch(scale, {blocks, threads}, x, 2.0f);
///   gin::streamSynchronize(nullptr);

#include "gin/platform.h"

#if GIN_EXECUTOR_KERNELS
typedef struct gin_exec_stream* ginStream_t;
#else
#include <cuda_runtime.h>
typedef cudaStream_t ginStream_t;
#endif

namespace gin {

using Stream = ginStream_t;

/// grid: blocks, each dimension at least 1, x at most 2^31 - 1, y and z at most 65535.
/// block: threads of a block, each dimension at least 1, at most 1024 in all (x and y at most 1024,
/// z at most 64).
/// shared_bytes: size of GIN_DYNAMIC_SHARED; the executor takes up to 227 KiB.
/// stream: nullptr is the default stream; on the executor each host thread has its own.
struct LaunchConfig {
  dim3 grid{};
  dim3 block{};
  size_t shared_bytes = 0;
  Stream stream = nullptr;
};

/// Runs kernel(args...) in every thread of the grid, asynchronously to the host and behind earlier
/// launches of the same stream. Arguments are converted to the parameter types and copied now.
/// Returns ginSuccess once it is queued; ginInvalidArgument for a configuration that is not
/// allowed, with one sentence on standard error. On the executor kernel may be any callable, and an
/// exception that leaves it ends the launch: the stream's next synchronisation returns
/// ginUnhandledCudaError, and launches queued behind it are dropped until then.
template <class Kernel, class... Args>
ginResult_t launch(Kernel kernel, const LaunchConfig& config, Args&&... args);

/// The same with all blocks running at the same time, so that they may wait for each other.
/// ginInvalidArgument, with one sentence, when they do not fit.
template <class Kernel, class... Args>
ginResult_t launchCooperative(Kernel kernel, const LaunchConfig& config, Args&&... args);

/// A new stream of the calling host thread's device.
inline ginResult_t streamCreate(Stream* stream);
/// Launches that are still queued run to their end.
inline ginResult_t streamDestroy(Stream stream);
/// Returns when all launches of the stream are complete: the first error since the last call.
inline ginResult_t streamSynchronize(Stream stream);
/// The same for all streams of the calling host thread's device.
inline ginResult_t deviceSynchronize();
/// The device of the calling host thread (default 0). On the executor any number is a device; ranks
/// that are threads of one process take one each.
inline ginResult_t setDevice(int device);

}  // namespace gin

#if GIN_EXECUTOR_KERNELS
#include "gin/impl/launch_executor.h"
#else
#include "gin/impl/launch_cuda.h"
#endif

#endif
