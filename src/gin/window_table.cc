// SPDX-License-Identifier: BSD-3-Clause
#include "gin/window_table.h"

#include <algorithm>

namespace gimlet::gin {

static_assert(sizeof(ginWindowEntry) == 64, "an entry is one cache line");

Status WindowTable::open() {
  return device::host_memory().allocate(kCapacity * sizeof(ginWindowEntry), "gimlet-gin-windows",
                                        memory_);
}

Status WindowTable::add(Window window, ginWindowEntry entry, ginWindow_t& handle) {
  const std::scoped_lock lock(mutex_);
  auto free = std::ranges::find_if(windows_, [](const auto& w) { return w == nullptr; });
  if (free == windows_.end()) {
    if (windows_.size() == kCapacity) {
      return fail(Code::kNoMemory, "a communicator has at most {} windows at a time", kCapacity);
    }
    free = windows_.emplace(windows_.end());
  }
  *free = std::make_unique<Window>(std::move(window));
  entry.peers = (*free)->parts.data();
  if ((*free)->segments != nullptr) entry.segments = (*free)->segments->by_rank.data();
  entry.staged = (*free)->staged.get();
  entry.live = GIN_WINDOW_LIVE;
  handle = entries() + (free - windows_.begin());
  *handle = entry;  // kernels that know the handle are launched after this
  return {};
}

Status WindowTable::remove(ginWindow_t handle) {
  std::unique_ptr<Window> gone;  // unmapped after the lock is dropped
  const std::scoped_lock lock(mutex_);
  if (!is_entry(handle)) {
    return fail(Code::kInvalidArgument, "{} is not a window of this communicator",
                static_cast<void*>(handle));
  }
  gone = std::move(windows_[static_cast<std::size_t>(handle - entries())]);
  *handle = {};
  return {};
}

const Window* WindowTable::find(ginWindow_t handle) const {
  const std::scoped_lock lock(mutex_);
  return is_entry(handle) ? windows_[static_cast<std::size_t>(handle - entries())].get() : nullptr;
}

bool WindowTable::is_entry(ginWindow_t handle) const {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(entries());
  return offset % sizeof(ginWindowEntry) == 0 &&
         offset / sizeof(ginWindowEntry) < windows_.size() &&
         windows_[offset / sizeof(ginWindowEntry)] != nullptr;
}

}  // namespace gimlet::gin
