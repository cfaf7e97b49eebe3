// SPDX-License-Identifier: BSD-3-Clause
// OpenSHMEM 1.6, 9.3: symmetric memory.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "pgas/api/export.h"
#include "pgas/pe.h"

namespace {

using gimlet::pgas::OffsetAllocator;
using gimlet::pgas::Pe;

void barrier(const char* call) {
  Pe::self().quiet(call);
  Pe::self().sync(call);
}

/// Equal arguments meet equal allocator states, so all PEs get the same answer and all reach the
/// barrier.
void* allocate(const char* call, std::size_t bytes, std::size_t alignment) {
  void* block = Pe::self().allocate(call, bytes, alignment);
  if (block != nullptr) barrier(call);
  return block;
}

}  // namespace

GIMLET_SHMEM(void*, malloc, size_t size) {
  return size == 0 ? nullptr : allocate("shmem_malloc", size, OffsetAllocator::kGranule);
}

GIMLET_SHMEM(void*, calloc, size_t count, size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes == 0) return nullptr;
  void* block = Pe::self().allocate("shmem_calloc", bytes, OffsetAllocator::kGranule);
  if (block == nullptr) return nullptr;
  std::memset(block, 0, bytes);  // before the barrier: a peer may write right after it
  barrier("shmem_calloc");
  return block;
}

GIMLET_SHMEM(void*, align, size_t alignment, size_t size) {
  if (size == 0 || !std::has_single_bit(alignment) || alignment % sizeof(void*) != 0)
    return nullptr;
  // Offsets are aligned; addresses are too as long as the bases of all heaps are. This PE's own
  // base may be aligned to more by chance, so it is not asked: all PEs must come to the same
  // answer.
  const gimlet::device::Memory* heap = Pe::self().heap();
  if (heap != nullptr && alignment > std::min(std::bit_floor(heap->size()),
                                              gimlet::device::MemoryKind::kLargestAlignment))
    return nullptr;
  return allocate("shmem_align", size, alignment);
}

GIMLET_SHMEM(void, free, void* ptr) {
  if (ptr == nullptr) return;
  barrier("shmem_free");
  Pe::self().release("shmem_free", ptr);
}

GIMLET_SHMEM(void*, realloc, void* ptr, size_t size) {
  constexpr const char* kCall = "shmem_realloc";
  if (ptr == nullptr) return size == 0 ? nullptr : allocate(kCall, size, OffsetAllocator::kGranule);
  barrier(kCall);  // peers have finished their accesses to the old block
  Pe& self = Pe::self();
  if (size == 0) {
    self.release(kCall, ptr);
    return nullptr;
  }
  const std::size_t old_bytes = self.allocated_bytes(kCall, ptr);
  if (size <= old_bytes) return ptr;
  void* block = self.allocate(kCall, size, OffsetAllocator::kGranule);
  if (block == nullptr) return nullptr;
  std::memcpy(block, ptr, old_bytes);
  barrier(kCall);
  self.release(kCall, ptr);
  return block;
}
