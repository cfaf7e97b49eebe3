// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_MEMORY_BARRIER_H
#define GIMLET_PGAS_MEMORY_BARRIER_H

#include <atomic>

namespace gimlet::pgas {

/// Earlier stores of this thread are visible to every core before its later loads. A lock-prefixed
/// read-modify-write of the stack is the cheapest full barrier of x86; mfence takes several times
/// as long.
inline void store_to_load_barrier() {
#if defined(__x86_64__)
  asm volatile("lock; orl $0, -4(%%rsp)" ::: "memory", "cc");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// Orders this thread's stores, for loads of peers that use acquire.
inline void store_release_barrier() {
#if defined(__x86_64__)
  asm volatile("" ::: "memory");
#else
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

}  // namespace gimlet::pgas

#endif
