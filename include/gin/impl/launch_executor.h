// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_LAUNCH_EXECUTOR_H
#define GIMLET_GIN_IMPL_LAUNCH_EXECUTOR_H

#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gin {
namespace impl {

/// A kernel with its arguments, as the executor holds it until the last thread is done.
template <class Kernel, class... Params>
struct BoundKernel {
  Kernel kernel;
  std::tuple<Params...> params;

  static void call(void* self) {
    const BoundKernel& bound = *static_cast<const BoundKernel*>(self);
    std::apply(bound.kernel, bound.params);
  }
  static void destroy(void* self) { delete static_cast<BoundKernel*>(self); }
};

inline gin_exec_dim dim(const dim3& d) {
  return gin_exec_dim{d.x, d.y, d.z};
}

template <class Bound>
ginResult_t queue(Bound* bound, const void* function, const LaunchConfig& config, int cooperative) {
  if (bound == nullptr) return ginSystemError;
  const gin_exec_launch_config raw = {dim(config.grid), dim(config.block), config.shared_bytes,
                                      config.stream, cooperative};
  const gin_exec_kernel kernel = {&Bound::call, &Bound::destroy, bound, function, nullptr};
  return static_cast<ginResult_t>(gin_exec_launch(&raw, &kernel));
}

template <class... Params, class... Args>
ginResult_t bind_and_queue(void (*kernel)(Params...), const LaunchConfig& config, int cooperative,
                           Args&&... args) {
  static_assert(!(std::is_reference<Params>::value || ...),
                "kernels take their parameters by value: the caller's variables may be gone");
  using Bound = BoundKernel<void (*)(Params...), std::remove_cv_t<Params>...>;
  return queue(
      new (std::nothrow)
          Bound{kernel, std::tuple<std::remove_cv_t<Params>...>(std::forward<Args>(args)...)},
      reinterpret_cast<const void*>(kernel), config, cooperative);
}

template <class Kernel, class... Args>
ginResult_t bind_and_queue(Kernel kernel, const LaunchConfig& config, int cooperative,
                           Args&&... args) {
  using Bound = BoundKernel<Kernel, std::decay_t<Args>...>;
  return queue(
      new (std::nothrow)
          Bound{std::move(kernel), std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)},
      nullptr, config, cooperative);
}

}  // namespace impl

template <class Kernel, class... Args>
ginResult_t launch(Kernel kernel, const LaunchConfig& config, Args&&... args) {
  return impl::bind_and_queue(kernel, config, 0, std::forward<Args>(args)...);
}
template <class Kernel, class... Args>
ginResult_t launchCooperative(Kernel kernel, const LaunchConfig& config, Args&&... args) {
  return impl::bind_and_queue(kernel, config, 1, std::forward<Args>(args)...);
}
inline ginResult_t streamCreate(Stream* stream) {
  return static_cast<ginResult_t>(gin_exec_stream_create(stream));
}
inline ginResult_t streamDestroy(Stream stream) {
  return static_cast<ginResult_t>(gin_exec_stream_destroy(stream));
}
inline ginResult_t streamSynchronize(Stream stream) {
  return static_cast<ginResult_t>(gin_exec_stream_synchronize(stream));
}
inline ginResult_t deviceSynchronize() {
  return static_cast<ginResult_t>(gin_exec_device_synchronize());
}
inline ginResult_t setDevice(int device) {
  return static_cast<ginResult_t>(gin_exec_set_device(device));
}

}  // namespace gin

#endif
