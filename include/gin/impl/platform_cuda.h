// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_PLATFORM_CUDA_H
#define GIMLET_GIN_IMPL_PLATFORM_CUDA_H

#include <cuda/atomic>

#define GIN_DEVICE_INLINE __device__ __forceinline__
#define GIN_HOST_DEVICE_INLINE __host__ __device__ __forceinline__

#define GIN_SHARED(type, name) __shared__ ::gin::impl::Same<type> name
#define GIN_DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]

namespace gin {

using memory_order = cuda::std::memory_order;
using cuda::std::memory_order_acq_rel;
using cuda::std::memory_order_acquire;
using cuda::std::memory_order_relaxed;
using cuda::std::memory_order_release;
using cuda::std::memory_order_seq_cst;

using thread_scope = cuda::thread_scope;
using cuda::thread_scope_block;
using cuda::thread_scope_device;
using cuda::thread_scope_system;
using cuda::thread_scope_thread;

template <class T, thread_scope Scope = thread_scope_system>
using atomic_ref = cuda::atomic_ref<T, Scope>;

namespace impl {

template <class T>
struct SameAs {
  using type = T;
};
template <class T>
using Same = typename SameAs<T>::type;

/// A load for wait loops that call wait_step() themselves.
template <thread_scope Scope = thread_scope_system, class T>
GIN_DEVICE_INLINE T load(const T* word, memory_order order) {
  return atomic_ref<T, Scope>(*const_cast<T*>(word)).load(order);
}

/// One fruitless turn of a wait loop: GPU threads run on their own, so there is nothing to do.
template <class T>
GIN_DEVICE_INLINE void wait_step(const T*, T) {}

/// Ends the kernel with an error.
__device__ __forceinline__ void end_kernel(ginResult_t, const char*) {
  __trap();
}

}  // namespace impl
}  // namespace gin

#endif
