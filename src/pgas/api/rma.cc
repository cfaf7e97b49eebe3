// SPDX-License-Identifier: BSD-3-Clause
// OpenSHMEM 1.6, 9.6: remote memory access, blocking and not.
#include <cstddef>
#include <cstring>

#include "pgas/api/export.h"
#include "pgas/pe.h"

namespace {

using gimlet::pgas::Pe;

/// Bytes of `count` elements; what overflows is larger than any heap and is refused as such.
inline std::size_t bytes_of(std::size_t count, std::size_t element) {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(count, element, &bytes) ? SIZE_MAX : bytes;
}

/// Nothing may be asked for with null pointers, which memcpy does not allow.
inline void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) [[likely]]
    std::memcpy(to, from, bytes);
}

enum class Mode : unsigned char { kBlocking, kNonblocking };

template <Mode mode>
[[gnu::cold, gnu::noinline]] void put_slow(const char* call, void* dest, const void* source,
                                           std::size_t bytes, int pe) {
  if (bytes == 0) return;
  Pe& self = Pe::self();
  const Pe::Route route = self.route(call, "dest", dest, bytes, pe);
  if (route.direct != nullptr) {
    copy(route.direct, source, bytes);
    return;
  }
  auto& transport = self.transport(call);
  self.check(call, mode == Mode::kBlocking ? transport.put(route.remote, source, bytes)
                                           : transport.put_nbi(route.remote, source, bytes));
}

template <Mode mode>
[[gnu::cold, gnu::noinline]] void get_slow(const char* call, void* dest, const void* source,
                                           std::size_t bytes, int pe) {
  if (bytes == 0) return;
  Pe& self = Pe::self();
  const Pe::Route route = self.route(call, "source", source, bytes, pe);
  if (route.direct != nullptr) {
    copy(dest, route.direct, bytes);
    return;
  }
  auto& transport = self.transport(call);
  self.check(call, mode == Mode::kBlocking ? transport.get(dest, route.remote, bytes)
                                           : transport.get_nbi(dest, route.remote, bytes));
}

template <Mode mode>
inline void put(const char* call, void* dest, const void* source, std::size_t bytes, int pe) {
  if (void* to = Pe::self().direct(dest, bytes, pe); to != nullptr) [[likely]] {
    copy(to, source, bytes);
    return;
  }
  put_slow<mode>(call, dest, source, bytes, pe);
}

template <Mode mode>
inline void get(const char* call, void* dest, const void* source, std::size_t bytes, int pe) {
  if (const void* from = Pe::self().direct(source, bytes, pe); from != nullptr) [[likely]] {
    copy(dest, from, bytes);
    return;
  }
  get_slow<mode>(call, dest, source, bytes, pe);
}

/// Takes the value by value: the fast path then keeps it in a register.
template <class T>
[[gnu::cold, gnu::noinline]] void put_one_slow(const char* call, T* dest, T value, int pe) {
  put_slow<Mode::kBlocking>(call, dest, &value, sizeof(T), pe);
}

template <class T>
[[gnu::cold, gnu::noinline]] T get_one_slow(const char* call, const T* source, int pe) {
  T value;
  get_slow<Mode::kBlocking>(call, &value, source, sizeof(T), pe);
  return value;
}

/// One element: a single store or load where the machine has one, since programs poll what p wrote.
template <class T>
inline void put_one(const char* call, T* dest, T value, int pe) {
  if (T* to = Pe::self().direct(dest, pe); to != nullptr) [[likely]] {
    if constexpr (sizeof(T) <= 8) {
      __atomic_store(to, &value, __ATOMIC_RELAXED);
    } else {
      *to = value;
    }
    return;
  }
  put_one_slow(call, dest, value, pe);
}

template <class T>
inline T get_one(const char* call, const T* source, int pe) {
  if (const T* from = Pe::self().direct(source, pe); from != nullptr) [[likely]] {
    T value;
    if constexpr (sizeof(T) <= 8) {
      __atomic_load(from, &value, __ATOMIC_RELAXED);
    } else {
      value = *from;
    }
    return value;
  }
  return get_one_slow(call, source, pe);
}

}  // namespace

#define DEFINE_TYPED(NAME, TYPE, ARG)                                                              \
  GIMLET_SHMEM(void, NAME##_put, TYPE* dest, const TYPE* source, size_t nelems, int pe) {          \
    put<Mode::kBlocking>("shmem_" #NAME "_put", dest, source, bytes_of(nelems, sizeof(TYPE)), pe); \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_get, TYPE* dest, const TYPE* source, size_t nelems, int pe) {          \
    get<Mode::kBlocking>("shmem_" #NAME "_get", dest, source, bytes_of(nelems, sizeof(TYPE)), pe); \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_put_nbi, TYPE* dest, const TYPE* source, size_t nelems, int pe) {      \
    put<Mode::kNonblocking>("shmem_" #NAME "_put_nbi", dest, source,                               \
                            bytes_of(nelems, sizeof(TYPE)), pe);                                   \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_get_nbi, TYPE* dest, const TYPE* source, size_t nelems, int pe) {      \
    get<Mode::kNonblocking>("shmem_" #NAME "_get_nbi", dest, source,                               \
                            bytes_of(nelems, sizeof(TYPE)), pe);                                   \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_p, TYPE* dest, TYPE value, int pe) {                                   \
    put_one<TYPE>("shmem_" #NAME "_p", dest, value, pe);                                           \
  }                                                                                                \
  GIMLET_SHMEM(TYPE, NAME##_g, const TYPE* source, int pe) {                                       \
    return get_one<TYPE>("shmem_" #NAME "_g", source, pe);                                         \
  }
SHMEM_I_RMA(DEFINE_TYPED, )

#define DEFINE_BYTES(SUFFIX, BYTES)                                                              \
  GIMLET_SHMEM(void, put##SUFFIX, void* dest, const void* source, size_t nelems, int pe) {       \
    put<Mode::kBlocking>("shmem_put" #SUFFIX, dest, source, bytes_of(nelems, BYTES), pe);        \
  }                                                                                              \
  GIMLET_SHMEM(void, get##SUFFIX, void* dest, const void* source, size_t nelems, int pe) {       \
    get<Mode::kBlocking>("shmem_get" #SUFFIX, dest, source, bytes_of(nelems, BYTES), pe);        \
  }                                                                                              \
  GIMLET_SHMEM(void, put##SUFFIX##_nbi, void* dest, const void* source, size_t nelems, int pe) { \
    put<Mode::kNonblocking>("shmem_put" #SUFFIX "_nbi", dest, source, bytes_of(nelems, BYTES),   \
                            pe);                                                                 \
  }                                                                                              \
  GIMLET_SHMEM(void, get##SUFFIX##_nbi, void* dest, const void* source, size_t nelems, int pe) { \
    get<Mode::kNonblocking>("shmem_get" #SUFFIX "_nbi", dest, source, bytes_of(nelems, BYTES),   \
                            pe);                                                                 \
  }
#define DEFINE_SIZED(SIZE, ARG) DEFINE_BYTES(SIZE, SIZE / 8)
SHMEM_I_SIZES(DEFINE_SIZED, )
DEFINE_BYTES(mem, 1)
