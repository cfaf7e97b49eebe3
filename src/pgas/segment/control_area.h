// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_SEGMENT_CONTROL_AREA_H
#define GIMLET_PGAS_SEGMENT_CONTROL_AREA_H

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gimlet::pgas {

/// The first bytes of every PE's heap segment: what the library itself shares. Starts as zeros.
///
/// Who writes what. `doorbell`, `transport_wanted`: any PE of the node; the owner's helper thread
/// sleeps on the doorbell. `transport_state`, `blob`: the owner; the blob is complete before the
/// state is stored as kReady with release, read with acquire. `cpus`: the owner, before memory is
/// exchanged. `sync_flags[k]`: one partner a round, ascending epochs, reached by whichever
/// transport leads there. `exit_flags`: the same at the end of the job, always by stores.
/// `mailbox`: the owner, between two barriers.
struct ControlArea {
  static constexpr std::size_t kBlobBytes = 8192;
  static constexpr std::size_t kMailboxBytes = 4096;
  static constexpr std::size_t kSyncRounds = 32;
  enum State : std::uint32_t { kCold = 0, kReady = 1, kFailed = 2 };

  struct alignas(64) Flag {
    std::uint64_t epoch;
  };

  alignas(64) std::atomic<std::uint32_t> doorbell;
  std::atomic<std::uint32_t> transport_wanted;
  std::atomic<std::uint32_t> transport_state;
  std::uint32_t blob_bytes;
  alignas(64) cpu_set_t cpus;
  alignas(64) Flag sync_flags[kSyncRounds];
  alignas(64) Flag exit_flags[kSyncRounds];
  alignas(64) std::byte blob[kBlobBytes];
  alignas(64) std::byte mailbox[kMailboxBytes];
};

/// User memory of the heap starts here.
constexpr std::size_t kControlBytes = 64 * 1024;
static_assert(sizeof(ControlArea) <= kControlBytes);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace gimlet::pgas

#endif
