// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/memory_barrier.h"
#include "pgas/pe.h"

namespace gimlet::pgas {

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
