// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include "pgas/pe.h"

namespace gimlet::pgas {
namespace {

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

}  // namespace

void Pe::fence(const char* call) {
  store_release_barrier();
  Transport* transport = started_transport();
  if (transport == nullptr) [[likely]]
    return;
  check(call,
        has_two_ways_.load(std::memory_order_relaxed) ? transport->quiet() : transport->fence());
}

void Pe::quiet(const char* call) {
  if (Transport* transport = started_transport()) [[unlikely]]
    check(call, transport->quiet());
  store_to_load_barrier();
}

}  // namespace gimlet::pgas
