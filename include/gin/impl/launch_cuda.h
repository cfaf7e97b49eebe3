// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_LAUNCH_CUDA_H
#define GIMLET_GIN_IMPL_LAUNCH_CUDA_H

#include <stdio.h>

#include <tuple>
#include <type_traits>
#include <utility>

namespace gin {
namespace impl {

inline ginResult_t result(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return ginSuccess;
  fprintf(stderr, "gimlet: error: %s failed: %s\n", call, cudaGetErrorString(error));
  switch (error) {
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorCooperativeLaunchTooLarge:
    case cudaErrorInvalidResourceHandle:
      return ginInvalidArgument;
    default:
      return ginUnhandledCudaError;
  }
}

template <class... Params, size_t... I>
ginResult_t launch_kernel(void (*kernel)(Params...), const LaunchConfig& config, bool cooperative,
                          std::tuple<Params...>& params, std::index_sequence<I...>) {
  void* pointers[sizeof...(Params) + 1] = {
      const_cast<void*>(static_cast<const void*>(&std::get<I>(params)))..., nullptr};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t raw{};
  raw.gridDim = config.grid;
  raw.blockDim = config.block;
  raw.dynamicSmemBytes = config.shared_bytes;
  raw.stream = config.stream;
  raw.attrs = &attribute;
  raw.numAttrs = cooperative ? 1 : 0;
  return result(cudaLaunchKernelExC(&raw, reinterpret_cast<const void*>(kernel), pointers),
                "cudaLaunchKernelExC");
}

template <class... Params, class... Args>
ginResult_t convert_and_launch(void (*kernel)(Params...), const LaunchConfig& config,
                               bool cooperative, Args&&... args) {
  std::tuple<Params...> params(std::forward<Args>(args)...);
  return launch_kernel(kernel, config, cooperative, params, std::index_sequence_for<Params...>());
}

}  // namespace impl

template <class Kernel, class... Args>
ginResult_t launch(Kernel kernel, const LaunchConfig& config, Args&&... args) {
  return impl::convert_and_launch(kernel, config, false, std::forward<Args>(args)...);
}
template <class Kernel, class... Args>
ginResult_t launchCooperative(Kernel kernel, const LaunchConfig& config, Args&&... args) {
  return impl::convert_and_launch(kernel, config, true, std::forward<Args>(args)...);
}
inline ginResult_t streamCreate(Stream* stream) {
  return impl::result(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking),
                      "cudaStreamCreateWithFlags");
}
inline ginResult_t streamDestroy(Stream stream) {
  return impl::result(cudaStreamDestroy(stream), "cudaStreamDestroy");
}
inline ginResult_t streamSynchronize(Stream stream) {
  return impl::result(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}
inline ginResult_t deviceSynchronize() {
  return impl::result(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}
inline ginResult_t setDevice(int device) {
  return impl::result(cudaSetDevice(device), "cudaSetDevice");
}

}  // namespace gin

#endif
