// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <atomic>

#include "pgas/pe.h"

namespace gimlet::pgas {
namespace {

/// Release: pairs with the acquire load of the partner that waits for this epoch.
void raise(std::byte* segment, std::size_t offset, std::uint64_t epoch) {
  auto& flag = *reinterpret_cast<std::uint64_t*>(segment + offset);
  std::atomic_ref<std::uint64_t>(flag).store(epoch, std::memory_order_release);
}

}  // namespace

/// Dissemination: in round k this PE tells PE rank + 2^k and hears from PE rank - 2^k. Epochs only
/// grow, so a flag needs no reset and a partner that is already one epoch ahead can't be missed.
/// What a PE stored before it entered is visible to all after: tell() releases, the wait acquires.
template <class Tell>
void Pe::disseminate(const char* call, ControlArea::Flag* heard, std::uint64_t epoch, Tell tell) {
  std::size_t round = 0;
  for (int distance = 1; distance < size_; distance *= 2, ++round) {
    tell((rank_ + distance) % size_, round);
    const std::atomic_ref<std::uint64_t> flag(heard[round].epoch);
    wait(
        call, [&] { return flag.load(std::memory_order_acquire) >= epoch; },
        [&] {
          return fmt::format("PE {} to enter (round {} of the barrier, epoch {}, it was at {})",
                             (rank_ - distance + size_) % size_, round, epoch,
                             flag.load(std::memory_order_relaxed));
        });
  }
}

void Pe::sync(const char* call) {
  if (!is_initialized()) die(call, "called before shmem_init or after shmem_finalize");
  const std::uint64_t epoch = ++sync_epoch_;
  disseminate(call, own_control().sync_flags, epoch, [&](int partner, std::size_t round) {
    const std::size_t offset =
        offsetof(ControlArea, sync_flags) + round * sizeof(ControlArea::Flag);
    if (std::byte* base = host_base_[partner]; base != nullptr) [[likely]] {
      raise(base, offset, epoch);
    } else {
      check(call, transport(call).amo(AmoOp::kSet, 8, {partner, kHeapSegment, offset}, epoch, 0,
                                      nullptr));
    }
  });
}

/// The last messages of sync() may still be on their way when this PE has heard its own: a worker
/// that is taken down then could take them along. So the job parts by stores where all PEs share a
/// node, and by the launcher's fence elsewhere, while the helper threads go on serving.
void Pe::settle(const char* call) {
  const bool is_one_node =
      std::ranges::none_of(mapped_base_, [](std::byte* base) { return base == nullptr; });
  if (!is_one_node) {
    check(call, bootstrap_->fence());
    return;
  }
  disseminate(call, own_control().exit_flags, 1, [&](int partner, std::size_t round) {
    raise(mapped_base(partner),
          offsetof(ControlArea, exit_flags) + round * sizeof(ControlArea::Flag), 1);
  });
}

}  // namespace gimlet::pgas
