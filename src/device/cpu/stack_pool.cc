// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/stack_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>

#include "device/cpu/sanitizer.h"
#include "device/log.h"

namespace gimlet::device {
namespace {

constexpr std::size_t kMappedAtOnce = 64 * 1024 * 1024;
constexpr std::size_t kMostAtOnce = 512;
constexpr std::size_t kKept = 8192;  // 33 MiB
constexpr std::size_t kShifts = 32;
constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kLeastBytes = 16 * 1024;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kLeastSanitized = 256 * 1024;  // their frames are larger
constexpr int kGuardInstall = 102;                     // MADV_GUARD_INSTALL

/// An odd number of pages: the pages at the tops, one a fiber, then spread over all sets of the TLB
/// (measured with 4096 fibers: 18 instead of 60 to 80 ns a switch).
std::size_t whole_bytes(std::uint64_t usable) {
  usable = std::clamp(usable, kSanitized ? kLeastSanitized : kLeastBytes, kMostBytes);
  return ((static_cast<std::size_t>(usable) + StackPool::kGuardBytes + kPage - 1) / kPage | 1) *
         kPage;
}

void move_last(std::vector<std::byte*>& from, std::size_t count, std::vector<std::byte*>& to) {
  to.insert(to.end(), from.rbegin(), from.rbegin() + static_cast<std::ptrdiff_t>(count));
  from.resize(from.size() - count);
}

/// What the process may have, all its mappings together.
std::size_t mapping_limit() {
  std::size_t limit = 65530;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  return limit;
}

}  // namespace

StackPool::StackPool(std::uint64_t usable_bytes, Guard guard)
    : stack_bytes_(whole_bytes(usable_bytes)), guard_(guard), mappings_left_(mapping_limit() / 2) {}

std::byte* StackPool::top(std::byte* stack) const {
  const std::size_t number = reinterpret_cast<std::uintptr_t>(stack) / stack_bytes_;
  return stack + stack_bytes_ - number % kShifts * kLine;
}

void StackPool::protect(std::byte* stack) {
  if (guard_ == Guard::kLight && ::madvise(stack, kGuardBytes, kGuardInstall) != 0)
    guard_ = Guard::kMapping;
  if (guard_ != Guard::kMapping) return;
  if (mappings_left_ < 2 || ::mprotect(stack, kGuardBytes, PROT_NONE) != 0) {
    log::debug("no more guard pages below the stacks of kernels: too many mappings");
    guard_ = Guard::kNone;
    return;
  }
  mappings_left_ -= 2;
}

Status StackPool::map_more() {
  const std::size_t count = std::clamp<std::size_t>(kMappedAtOnce / stack_bytes_, 1, kMostAtOnce);
  const std::size_t bytes = count * stack_bytes_;
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED)
    return fail_errno(errno, "no address space for {} bytes of kernel stacks", bytes);
  // A huge page behind each top would turn 4 KiB a fiber into 64.
  ::madvise(mapped, bytes, MADV_NOHUGEPAGE);
  auto* const base = static_cast<std::byte*>(mapped);
  cold_.reserve(cold_.size() + count);
  for (std::size_t i = count; i-- > 0;) {  // the lowest is handed out first
    cold_.push_back(base + i * stack_bytes_);
    protect(cold_.back());
  }
  return {};
}

Status StackPool::take(std::size_t count, std::vector<std::byte*>& stacks) {
  const std::lock_guard lock(mutex_);
  while (warm_.size() + cold_.size() < count) GIMLET_TRY(map_more());
  const std::size_t warm = std::min(count, warm_.size());
  move_last(warm_, warm, stacks);
  move_last(cold_, count - warm, stacks);
  return {};
}

void StackPool::give_back(std::vector<std::byte*>& stacks) {
  const std::lock_guard lock(mutex_);
  // Backwards, so that the next block gets them in the same order and finds them in the cache.
  for (std::size_t i = stacks.size(); i-- > 0;) {
    if (warm_.size() < kKept) {
      warm_.push_back(stacks[i]);
    } else {
      ::madvise(low(stacks[i]), stack_bytes_ - kGuardBytes, MADV_DONTNEED);
      cold_.push_back(stacks[i]);
    }
  }
  stacks.clear();
}

}  // namespace gimlet::device
