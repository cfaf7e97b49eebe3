// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/stack_pool.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

namespace gimlet::device {
namespace {

constexpr std::size_t kMappedAtOnce = 512;
constexpr std::size_t kKept = 8192;  // 33 MiB
constexpr std::size_t kShifts = 32;
constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;

}  // namespace

std::byte* StackPool::top(std::byte* stack) {
  const std::size_t number = reinterpret_cast<std::uintptr_t>(stack) / kStackBytes;
  return stack + kStackBytes - number % kShifts * kLine;
}

Status StackPool::map_more() {
  const std::size_t bytes = kMappedAtOnce * kStackBytes;
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED)
    return fail_errno(errno, "no address space for {} bytes of kernel stacks", bytes);
  // A huge page behind each top would turn 4 KiB a fiber into 64.
  ::madvise(mapped, bytes, MADV_NOHUGEPAGE);
  auto* const base = static_cast<std::byte*>(mapped);
  free_.reserve(free_.size() + kMappedAtOnce);
  for (std::size_t i = kMappedAtOnce; i-- > 0;) {  // the lowest is handed out first
    std::byte* const stack = base + i * kStackBytes;
    // Two mappings a stack: affordable only where the sanitizers limit the threads anyway.
    if (kSanitized) ::mprotect(stack, kPage, PROT_NONE);
    free_.push_back(stack);
  }
  return {};
}

Status StackPool::take(std::size_t count, std::vector<std::byte*>& stacks) {
  const std::lock_guard lock(mutex_);
  while (free_.size() < count) GIMLET_TRY(map_more());
  stacks.insert(stacks.end(), free_.rbegin(), free_.rbegin() + static_cast<std::ptrdiff_t>(count));
  free_.resize(free_.size() - count);
  return {};
}

void StackPool::give_back(std::vector<std::byte*>& stacks) {
  const std::lock_guard lock(mutex_);
  // Backwards, so that the next block gets them in the same order and finds them in the cache.
  for (std::size_t i = stacks.size(); i-- > 0;) {
    if (free_.size() >= kKept) ::madvise(stacks[i] + kPage, kStackBytes - kPage, MADV_DONTNEED);
    free_.push_back(stacks[i]);
  }
  stacks.clear();
}

}  // namespace gimlet::device
