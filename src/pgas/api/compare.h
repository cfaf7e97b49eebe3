// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_API_COMPARE_H
#define GIMLET_PGAS_API_COMPARE_H

#include <functional>

#include "pgas/api/export.h"
#include "pgas/pe.h"

namespace gimlet::pgas {

/// One of the six comparisons, in the signedness of T.
template <class T>
inline bool holds(int cmp, T value, T wanted) {
  switch (cmp) {
    case SHMEM_CMP_EQ:
      return value == wanted;
    case SHMEM_CMP_NE:
      return value != wanted;
    case SHMEM_CMP_GT:
      return value > wanted;
    case SHMEM_CMP_LE:
      return value <= wanted;
    case SHMEM_CMP_LT:
      return value < wanted;
    case SHMEM_CMP_GE:
      return value >= wanted;
    default:
      return false;
  }
}

inline const char* compare_name(int cmp) {
  constexpr const char* kNames[] = {"==", "!=", ">", "<=", "<", ">="};
  return kNames[cmp];
}

inline void require_compare(const char* call, int cmp) {
  if (cmp >= SHMEM_CMP_EQ && cmp <= SHMEM_CMP_GE) [[likely]]
    return;
  Pe::self().die(
      call,
      fmt::format("cmp {} is not a comparison; allowed are SHMEM_CMP_EQ ({}) to SHMEM_CMP_GE ({})",
                  cmp, SHMEM_CMP_EQ, SHMEM_CMP_GE));
}

inline void require_symmetric(const char* call, const char* argument, const void* address) {
  if (Pe::self().is_symmetric(address)) [[likely]]
    return;
  (void)Pe::self().route(call, argument, address, 1, Pe::self().rank());  // says what is wrong
}

/// The first looks of a wait, as fast as the processor can: what a peer answers at once is seen
/// here.
template <class T, class Holds>
bool look_hot_for(const T* address, T wanted, T& value, Holds comparison) {
  for (std::uint32_t look = Pe::self().hot_looks(); look != 0; --look) {
    __atomic_load(address, &value, __ATOMIC_ACQUIRE);
    if (comparison(value, wanted)) return true;
  }
  return false;
}

template <class T>
bool look_hot(const T* address, int cmp, T wanted, T& value) {
  switch (cmp) {
    case SHMEM_CMP_EQ:
      return look_hot_for(address, wanted, value, std::equal_to<T>());
    case SHMEM_CMP_NE:
      return look_hot_for(address, wanted, value, std::not_equal_to<T>());
    case SHMEM_CMP_GT:
      return look_hot_for(address, wanted, value, std::greater<T>());
    case SHMEM_CMP_LE:
      return look_hot_for(address, wanted, value, std::less_equal<T>());
    case SHMEM_CMP_LT:
      return look_hot_for(address, wanted, value, std::less<T>());
    default:
      return look_hot_for(address, wanted, value, std::greater_equal<T>());
  }
}

/// Returns the value that satisfied the comparison. The acquire load pairs with the release of the
/// peer's update.
template <class T>
T wait_until(const char* call, const T* address, int cmp, T wanted) {
  require_compare(call, cmp);
  T value;
  __atomic_load(address, &value, __ATOMIC_ACQUIRE);
  if (holds(cmp, value, wanted)) return value;
  require_symmetric(call, "address", address);
  if (look_hot(address, cmp, wanted, value)) return value;
  Pe::self().wait_patiently(
      call,
      [&] {
        __atomic_load(address, &value, __ATOMIC_ACQUIRE);
        return holds(cmp, value, wanted);
      },
      [&] {
        return fmt::format("the word at {} to be {} {}; it is {}",
                           static_cast<const void*>(address), compare_name(cmp), wanted, value);
      });
  return value;
}

}  // namespace gimlet::pgas

#endif
