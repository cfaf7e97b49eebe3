// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_PLATFORM_EXECUTOR_H
#define GIMLET_GIN_IMPL_PLATFORM_EXECUTOR_H

#include <string.h>

#include <atomic>
#include <type_traits>

#include "gin/impl/exec.h"

#if defined(__SANITIZE_THREAD__)
#define GIN_IMPL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GIN_IMPL_TSAN 1
#endif
#endif
#ifndef GIN_IMPL_TSAN
#define GIN_IMPL_TSAN 0
#endif

// The toolkit's host headers define these as attributes that a host compiler does not know.
#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

#define GIN_DEVICE_INLINE inline
#define GIN_HOST_DEVICE_INLINE inline

#define GIN_SHARED(type, name)        \
  static char gin_shared_site_##name; \
  ::gin::impl::Same<type>& name =     \
      ::gin::impl::shared<::gin::impl::Same<type>>(&gin_shared_site_##name)
#define GIN_DYNAMIC_SHARED(name) \
  unsigned char* const name = static_cast<unsigned char*>(gin_exec_dynamic_shared())

#ifndef __VECTOR_TYPES_H__  // the toolkit's own
using uint3 = gin_exec_dim;
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz) {}
  constexpr dim3(const gin_exec_dim& d) : x(d.x), y(d.y), z(d.z) {}
};
#endif

#define threadIdx (::gin::impl::here().thread)
#define blockIdx (::gin::impl::here().block)
#define blockDim (::gin::impl::here().block_dim)
#define gridDim (::gin::impl::here().grid_dim)
#define warpSize (::gin::impl::kWarpSize)

namespace gin {

using memory_order = std::memory_order;
using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

enum thread_scope {
  thread_scope_system = 0,
  thread_scope_device = 1,
  thread_scope_block = 2,
  thread_scope_thread = 10
};

namespace impl {

constexpr int kWarpSize = 32;

template <class T>
struct SameAs {
  using type = T;
};
template <class T>
using Same = typename SameAs<T>::type;

inline const gin_exec_thread& here() {
  return *gin_exec_here();
}

template <class T>
T& shared(const void* site) {
  static_assert(std::is_trivially_destructible<T>::value,
                "nobody destroys block-shared memory: its type needs a trivial destructor");
  return *static_cast<T*>(gin_exec_shared(site, sizeof(T), alignof(T)));
}

constexpr int builtin_order(memory_order order) {
  return order == memory_order_relaxed   ? __ATOMIC_RELAXED
         : order == memory_order_acquire ? __ATOMIC_ACQUIRE
         : order == memory_order_release ? __ATOMIC_RELEASE
         : order == memory_order_acq_rel ? __ATOMIC_ACQ_REL
                                         : __ATOMIC_SEQ_CST;
}

/// The order of a compare-exchange that fails: what is left of `order` for a load.
constexpr memory_order failure_order(memory_order order) {
  return order == memory_order_acq_rel   ? memory_order_acquire
         : order == memory_order_release ? memory_order_relaxed
                                         : order;
}

/// The first 8 bytes of a value, to tell whether it changed.
template <class T>
uint64_t fingerprint(const T& value) {
  uint64_t bits = 0;
  memcpy(&bits, static_cast<const void*>(&value),
         sizeof(T) < sizeof bits ? sizeof(T) : sizeof bits);
  return bits;
}

/// A load for wait loops that call wait_step() themselves.
template <thread_scope Scope = thread_scope_system, class T>
T load(const T* word, memory_order order) {
  T value;
  __atomic_load(word, &value, builtin_order(order));
  return value;
}

/// One fruitless turn of a wait loop on `word`, which was `seen`.
template <class T>
void wait_step(const T* word, T seen) {
  gin_exec_wait(word, fingerprint(seen));
}

/// Ends the kernel with an error. `sentence` is a literal.
[[noreturn]] inline void end_kernel(ginResult_t result, const char* sentence) {
  gin_exec_fail(result, sentence);
}

inline void fence() {
#if GIN_IMPL_TSAN
  // The thread sanitizer does not follow fences: to it, every fence meets every other one.
  static uint64_t meeting_point;
  __atomic_fetch_add(&meeting_point, 1, __ATOMIC_ACQ_REL);
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
  gin_exec_touch();
}

template <class T, class Update>
T update(T* word, memory_order order, Update&& next) {
  T seen = load(word, memory_order_relaxed);
  for (;;) {
    T wanted = next(seen);
    if (__atomic_compare_exchange(word, &seen, &wanted, true, builtin_order(order),
                                  builtin_order(failure_order(order)))) {
      return seen;
    }
  }
}

template <class T>
T exchange(T* word, T value, memory_order order) {
  T seen;
  __atomic_exchange(word, &value, &seen, builtin_order(order));
  return seen;
}

template <class T>
T fetch_add(T* word, T value, memory_order order) {
  if constexpr (std::is_integral<T>::value) {
    return __atomic_fetch_add(word, value, builtin_order(order));
  } else {
    return update(word, order, [value](T seen) { return seen + value; });
  }
}

}  // namespace impl

/// cuda::atomic_ref for the executor; every scope is the whole system. An operation that may be a
/// turn of a spin hands over to other threads, so that they make progress.
template <class T, thread_scope Scope = thread_scope_system>
class atomic_ref {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8,
                "atomic_ref takes trivially copyable types of at most 8 bytes");

 public:
  explicit atomic_ref(T& object) : word_(&object) {}

  T load(memory_order order = memory_order_seq_cst) const { return look(impl::load(word_, order)); }
  void store(T value, memory_order order = memory_order_seq_cst) const {
    __atomic_store(word_, &value, impl::builtin_order(order));
  }
  T exchange(T value, memory_order order = memory_order_seq_cst) const {
    return look(impl::exchange(word_, value, order));
  }
  bool compare_exchange_strong(T& expected, T desired,
                               memory_order order = memory_order_seq_cst) const {
    return compare_exchange_strong(expected, desired, order, impl::failure_order(order));
  }
  bool compare_exchange_strong(T& expected, T desired, memory_order success,
                               memory_order failure) const {
    const bool done =
        __atomic_compare_exchange(word_, &expected, &desired, false, impl::builtin_order(success),
                                  impl::builtin_order(failure));
    if (!done) look(expected);
    return done;
  }
  bool compare_exchange_weak(T& expected, T desired,
                             memory_order order = memory_order_seq_cst) const {
    return compare_exchange_strong(expected, desired, order);
  }
  bool compare_exchange_weak(T& expected, T desired, memory_order success,
                             memory_order failure) const {
    return compare_exchange_strong(expected, desired, success, failure);
  }
  T fetch_add(T value, memory_order order = memory_order_seq_cst) const {
    return touch(impl::fetch_add(word_, value, order));
  }
  T fetch_sub(T value, memory_order order = memory_order_seq_cst) const {
    return touch(
        impl::update(word_, order, [value](T seen) { return static_cast<T>(seen - value); }));
  }
  T fetch_and(T value, memory_order order = memory_order_seq_cst) const {
    return touch(__atomic_fetch_and(word_, value, impl::builtin_order(order)));
  }
  T fetch_or(T value, memory_order order = memory_order_seq_cst) const {
    return touch(__atomic_fetch_or(word_, value, impl::builtin_order(order)));
  }
  T fetch_xor(T value, memory_order order = memory_order_seq_cst) const {
    return touch(__atomic_fetch_xor(word_, value, impl::builtin_order(order)));
  }
  T fetch_min(T value, memory_order order = memory_order_seq_cst) const {
    return touch(
        impl::update(word_, order, [value](T seen) { return value < seen ? value : seen; }));
  }
  T fetch_max(T value, memory_order order = memory_order_seq_cst) const {
    return touch(
        impl::update(word_, order, [value](T seen) { return seen < value ? value : seen; }));
  }

 private:
  T look(T seen) const {
    gin_exec_look(word_, impl::fingerprint(seen));
    return seen;
  }
  T touch(T seen) const {
    gin_exec_touch();
    return seen;
  }

  T* word_;
};

}  // namespace gin

namespace cuda {
using gin::memory_order;
using gin::memory_order_acq_rel;
using gin::memory_order_acquire;
using gin::memory_order_relaxed;
using gin::memory_order_release;
using gin::memory_order_seq_cst;
using gin::thread_scope;
using gin::thread_scope_block;
using gin::thread_scope_device;
using gin::thread_scope_system;
using gin::thread_scope_thread;
}  // namespace cuda

inline void __syncthreads() {
  gin_exec_sync_block();
}
inline int __syncthreads_count(int predicate) {
  return gin_exec_sync_block_count(predicate);
}
inline int __syncthreads_or(int predicate) {
  return gin_exec_sync_block_count(predicate) != 0;
}
inline int __syncthreads_and(int predicate) {
  return gin_exec_sync_block_count(predicate == 0) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  gin_exec_sync_warp(mask);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return gin_exec_ballot(mask, predicate);
}
inline int __any_sync(unsigned mask, int predicate) {
  return gin_exec_ballot(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return gin_exec_ballot(mask, predicate == 0) == 0;
}
/// The threads that are known to run this instruction together: on the executor the caller alone.
inline unsigned __activemask() {
  return 1u << (gin_exec_here()->rank % 32);
}

namespace gin {
namespace impl {

inline int lane() {
  return static_cast<int>(gin_exec_here()->rank % 32);
}

template <class T>
T shuffle_from(unsigned mask, T value, int source) {
  static_assert(std::is_trivially_copyable<T>::value, "a shuffle copies bytes");
  T result = value;
  for (size_t at = 0; at < sizeof(T); at += sizeof(uint64_t)) {
    const size_t bytes = sizeof(T) - at < sizeof(uint64_t) ? sizeof(T) - at : sizeof(uint64_t);
    uint64_t word = 0;
    memcpy(&word, reinterpret_cast<const char*>(&value) + at, bytes);
    word = gin_exec_shuffle(mask, word, static_cast<unsigned>(source));
    memcpy(reinterpret_cast<char*>(&result) + at, &word, bytes);
  }
  return result;
}

}  // namespace impl
}  // namespace gin

/// A warp is cut into segments of `width` lanes (a power of two); sources are lanes of the segment.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const int segment = ::gin::impl::lane() & ~(width - 1);
  return ::gin::impl::shuffle_from(mask, value, segment + (source & (width - 1)));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = ::gin::impl::lane();
  const int source = lane - static_cast<int>(delta);
  return ::gin::impl::shuffle_from(mask, value, source < (lane & ~(width - 1)) ? lane : source);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = ::gin::impl::lane();
  const int source = lane + static_cast<int>(delta);
  return ::gin::impl::shuffle_from(mask, value, source > (lane | (width - 1)) ? lane : source);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  const int lane = ::gin::impl::lane();
  const int source = lane ^ lanes;
  return ::gin::impl::shuffle_from(mask, value, source > (lane | (width - 1)) ? lane : source);
}

inline void __threadfence() {
  ::gin::impl::fence();
}
inline void __threadfence_block() {
  ::gin::impl::fence();
}
inline void __threadfence_system() {
  ::gin::impl::fence();
}
/// Hands over once, however long the time: a thread that sleeps would hold up all the others.
inline void __nanosleep(unsigned) {
  gin_exec_yield();
}
[[noreturn]] inline void __trap() {
  gin_exec_fail(ginUnhandledCudaError, "the kernel called __trap");
}

inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}
inline int __popcll(unsigned long long bits) {
  return __builtin_popcountll(bits);
}
inline int __ffs(int bits) {
  return __builtin_ffs(bits);
}
inline int __ffsll(long long bits) {
  return __builtin_ffsll(bits);
}
inline int __clz(int bits) {
  return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits));
}
inline int __clzll(long long bits) {
  return bits == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(bits));
}

/// The atomic functions of CUDA: relaxed, and on the executor of system scope whatever the suffix.
#define GIN_IMPL_ATOMIC(suffix)                                                                   \
  template <class T>                                                                              \
  T atomicAdd##suffix(T* word, ::gin::impl::Same<T> value) {                                      \
    return ::gin::atomic_ref<T>(*word).fetch_add(value, ::gin::memory_order_relaxed);             \
  }                                                                                               \
  template <class T>                                                                              \
  T atomicSub##suffix(T* word, ::gin::impl::Same<T> value) {                                      \
    return ::gin::atomic_ref<T>(*word).fetch_sub(value, ::gin::memory_order_relaxed);             \
  }                                                                                               \
  template <class T>                                                                              \
  T atomicExch##suffix(T* word, ::gin::impl::Same<T> value) {                                     \
    return ::gin::atomic_ref<T>(*word).exchange(value, ::gin::memory_order_relaxed);              \
  }                                                                                               \
  template <class T>                                                                              \
  T atomicCAS##suffix(T* word, ::gin::impl::Same<T> compare, ::gin::impl::Same<T> value) {        \
    ::gin::atomic_ref<T>(*word).compare_exchange_strong(compare, value,                           \
                                                        ::gin::memory_order_relaxed);             \
    return compare;                                                                               \
  }                                                                                               \
  template <class T>                                                                              \
  T atomicMin##suffix(T* word, ::gin::impl::Same<T> value) {                                      \
    return ::gin::atomic_ref<T>(*word).fetch_min(value, ::gin::memory_order_relaxed);             \
  }                                                                                               \
  template <class T>                                                                              \
  T atomicMax##suffix(T* word, ::gin::impl::Same<T> value) {                                      \
    return ::gin::atomic_ref<T>(*word).fetch_max(value, ::gin::memory_order_relaxed);             \
  }                                                                                               \
  template <class T>                                                                              \
  T atomicAnd##suffix(T* word, ::gin::impl::Same<T> value) {                                      \
    return ::gin::atomic_ref<T>(*word).fetch_and(value, ::gin::memory_order_relaxed);             \
  }                                                                                               \
  template <class T>                                                                              \
  T atomicOr##suffix(T* word, ::gin::impl::Same<T> value) {                                       \
    return ::gin::atomic_ref<T>(*word).fetch_or(value, ::gin::memory_order_relaxed);              \
  }                                                                                               \
  template <class T>                                                                              \
  T atomicXor##suffix(T* word, ::gin::impl::Same<T> value) {                                      \
    return ::gin::atomic_ref<T>(*word).fetch_xor(value, ::gin::memory_order_relaxed);             \
  }                                                                                               \
  inline unsigned atomicInc##suffix(unsigned* word, unsigned limit) {                             \
    return ::gin::impl::update(word, ::gin::memory_order_relaxed,                                 \
                               [limit](unsigned seen) { return seen >= limit ? 0u : seen + 1; }); \
  }                                                                                               \
  inline unsigned atomicDec##suffix(unsigned* word, unsigned limit) {                             \
    return ::gin::impl::update(word, ::gin::memory_order_relaxed, [limit](unsigned seen) {        \
      return seen == 0 || seen > limit ? limit : seen - 1;                                        \
    });                                                                                           \
  }
GIN_IMPL_ATOMIC()
GIN_IMPL_ATOMIC(_block)
GIN_IMPL_ATOMIC(_system)
#undef GIN_IMPL_ATOMIC

#endif
