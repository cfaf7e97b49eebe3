// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include "pgas/pe.h"

namespace gimlet::pgas {
namespace {

/// Offset of a member of the control area in the heap segment of every PE.
std::uint64_t flag_offset(std::size_t round) {
  return offsetof(ControlArea, sync_flags) + round * sizeof(ControlArea::Flag);
}

}  // namespace

/// Dissemination: in round k this PE tells PE rank + 2^k and hears from PE rank - 2^k. Epochs only
/// grow, so a flag needs no reset and a partner that is already one epoch ahead can't be missed.
/// The release store (or remote set) of the flag pairs with the acquire load of the waiter: what a
/// PE stored before it entered is visible to all after.
void Pe::sync(const char* call) {
  if (!is_initialized()) die(call, "called before shmem_init or after shmem_finalize");
  const std::uint64_t epoch = ++sync_epoch_;
  ControlArea& own = own_control();
  std::size_t round = 0;
  for (int distance = 1; distance < size_; distance *= 2, ++round) {
    const int partner = (rank_ + distance) % size_;
    if (std::byte* base = host_base_[partner]; base != nullptr) [[likely]] {
      auto& flag = *reinterpret_cast<std::uint64_t*>(base + flag_offset(round));
      std::atomic_ref<std::uint64_t>(flag).store(epoch, std::memory_order_release);
    } else {
      check(call, transport(call).amo(AmoOp::kSet, 8, {partner, kHeapSegment, flag_offset(round)},
                                      epoch, 0, nullptr));
    }
    const std::atomic_ref<std::uint64_t> heard(own.sync_flags[round].epoch);
    wait(
        call, [&] { return heard.load(std::memory_order_acquire) >= epoch; },
        [&] {
          return fmt::format("PE {} to enter (round {} of the barrier, {} of {})",
                             (rank_ - distance + size_) % size_, round,
                             heard.load(std::memory_order_relaxed), epoch);
        });
  }
}

}  // namespace gimlet::pgas
