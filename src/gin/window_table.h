// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_WINDOW_TABLE_H
#define GIMLET_GIN_WINDOW_TABLE_H

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/guarded_memory.h"
#include "device/memory_kind.h"
#include "device/status.h"
#include "gin/impl/tables.h"
#include "gin/path/direct/direct_path.h"
#include "gin/path/proxy/proxy_path.h"

namespace gimlet::gin {

/// A part of a window that transports may not touch: its addresses are for copies of its kind.
struct StagedPart {
  const device::MemoryKind* kind = nullptr;
  std::byte* base = nullptr;
  std::unique_ptr<device::GuardedRange> guard;  // null: the kind has such addresses by itself
};

/// A registered window: what keeps its memory and mappings alive, and the parts of all ranks that
/// device code finds by slot.
struct Window {
  std::shared_ptr<const device::Memory> memory;
  void* user_pointer = nullptr;
  std::unique_ptr<DirectPath::Mapping> mapping;
  std::unique_ptr<StagedPart> staged;             // null: transports may touch the own part
  std::unique_ptr<ProxyPath::Segments> segments;  // null: no rank is reached through a proxy
  std::vector<ginPeerMemory> parts;               // by slot
};

/// The windows of a communicator. A handle is the address of an entry in a table that never moves,
/// so that device code can check a handle by arithmetic alone. One thread at a time registers and
/// removes; any thread may look up.
class WindowTable {
 public:
  static constexpr std::uint32_t kCapacity = 16384;

  Status open();
  /// Takes the window over; `entry` holds what device code shall find, but for the parts.
  Status add(Window window, ginWindowEntry entry, ginWindow_t& handle);
  Status remove(ginWindow_t handle);
  /// Null when the handle is none of this table.
  const Window* find(ginWindow_t handle) const;
  ginWindowEntry* entries() const { return reinterpret_cast<ginWindowEntry*>(memory_->base()); }

 private:
  bool is_entry(ginWindow_t handle) const;

  std::unique_ptr<device::Memory> memory_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Window>> windows_;  // by entry; null: free
};

}  // namespace gimlet::gin

#endif
