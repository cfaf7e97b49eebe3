// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_PROXY_RING_MEMORY_H
#define GIMLET_GIN_PATH_PROXY_RING_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/memory_kind.h"
#include "gin/dev_comm.h"
#include "gin/impl/ring_layout.h"
#include "gin/resource_layout.h"

namespace gimlet::gin {

/// The words that device code and the proxies of a device communicator share: rings, and the
/// signals and counters that the network raises. Zero at first, as rings and words have to be.
class RingMemory {
 public:
  /// `queue_depth` 0: the default. So many contexts in a row are served by one thread.
  static Status make(const ResourceLayout& layout, int ranks, std::uint32_t queue_depth,
                     std::uint32_t contexts_each, std::unique_ptr<RingMemory>& out);

  /// Room for small payloads, for device code whose sources transports may not read.
  Status add_bounces();

  std::span<ginRing> rings() const { return rings_; }
  /// Signals, which peers raise through their transports: the only part that they may touch.
  std::span<std::byte> signals() const { return signals_; }
  /// Puts the addresses into what device code gets.
  void fill(ginDevComm& comm) const;

 private:
  RingMemory() = default;

  std::unique_ptr<device::Memory> memory_;
  std::unique_ptr<device::Memory> bounces_;  // null: none
  std::span<ginRing> rings_;
  std::span<std::byte> signals_;
  std::span<std::byte> signal_bases_;
  std::span<std::byte> counters_;
  std::span<std::byte> counter_bases_;
};

}  // namespace gimlet::gin

#endif
