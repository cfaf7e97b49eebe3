// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_COPY_H
#define GIMLET_GIN_IMPL_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gin/coop.h"

/// The caller's share of a copy between memory that loads and stores reach. Shares of a coop cover
/// the whole; whoever publishes the copy synchronises the coop first.
namespace gin {
namespace impl {

#ifdef __CUDACC__

/// Neighbouring threads copy neighbouring units, so that a warp's accesses coalesce.
template <class Unit>
GIN_DEVICE_INLINE void copy_units(char* dst, const char* src, size_t units, Share share) {
  Unit* to = reinterpret_cast<Unit*>(dst);
  const Unit* from = reinterpret_cast<const Unit*>(src);
  for (size_t i = share.index; i < units; i += share.count) to[i] = from[i];
}

/// The widest unit that both addresses allow after a common head; head and tail go by bytes.
template <class Unit>
GIN_DEVICE_INLINE void copy_aligned(char* dst, const char* src, size_t bytes, Share share) {
  const size_t to_unit = (0 - reinterpret_cast<uintptr_t>(dst)) % sizeof(Unit);
  const size_t head = to_unit < bytes ? to_unit : bytes;
  const size_t units = (bytes - head) / sizeof(Unit);
  const size_t done = head + units * sizeof(Unit);
  copy_units<char>(dst, src, head, share);
  copy_units<Unit>(dst + head, src + head, units, share);
  copy_units<char>(dst + done, src + done, bytes - done, share);
}

GIN_DEVICE_INLINE void copy_share(char* dst, const char* src, size_t bytes, Share share) {
  const uintptr_t apart = reinterpret_cast<uintptr_t>(dst) ^ reinterpret_cast<uintptr_t>(src);
  if (apart % sizeof(uint4) == 0) {
    copy_aligned<uint4>(dst, src, bytes, share);
  } else if (apart % sizeof(uint32_t) == 0) {
    copy_aligned<uint32_t>(dst, src, bytes, share);
  } else {
    copy_units<char>(dst, src, bytes, share);
  }
}

#else

/// Each thread copies one run, of whole cache lines where there is enough for everybody.
GIN_DEVICE_INLINE void copy_share(char* dst, const char* src, size_t bytes, Share share) {
  constexpr size_t kLeast = 256;
  if (dst == src) return;
  const size_t even = (bytes + share.count - 1) / share.count;
  const size_t run = (even + kLeast - 1) / kLeast * kLeast;
  const size_t start = run * share.index;
  if (start >= bytes) return;
  memcpy(dst + start, src + start, run < bytes - start ? run : bytes - start);
}

#endif

}  // namespace impl
}  // namespace gin

#endif
