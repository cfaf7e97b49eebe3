// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/shared_arena.h"

#include <algorithm>

#include "device/cpu/sanitizer.h"

namespace gimlet::device {
namespace {

// Between objects, so that the address sanitizer sees an index that runs out of one.
constexpr std::size_t kRedZone = GIMLET_ASAN != 0 ? 32 : 0;

std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

SharedArena::Buffer SharedArena::allocate(std::size_t bytes) {
  return Buffer(static_cast<std::byte*>(std::aligned_alloc(kAlign, round_up(bytes, kAlign))));
}

SharedArena::~SharedArena() {
  if (static_) unpoison(static_.get(), kStaticBytes);
  if (dynamic_) unpoison(dynamic_.get(), dynamic_capacity_);
}

bool SharedArena::reset(std::size_t dynamic_bytes) {
  sites_.clear();
  static_used_ = 0;
  if (static_) poison(static_.get(), kStaticBytes);
  if (dynamic_bytes > dynamic_capacity_) {
    if (dynamic_) unpoison(dynamic_.get(), dynamic_capacity_);
    dynamic_ = allocate(dynamic_bytes);
    dynamic_capacity_ = dynamic_ ? round_up(dynamic_bytes, kAlign) : 0;
  }
  if (dynamic_bytes > dynamic_capacity_) return false;
  dynamic_bytes_ = dynamic_bytes;
  if (dynamic_) {
    poison(dynamic_.get(), dynamic_capacity_);
    unpoison(dynamic_.get(), dynamic_bytes);
  }
  return true;
}

void* SharedArena::object(const void* site, std::size_t bytes, std::size_t align) {
  const auto known = std::find_if(sites_.begin(), sites_.end(),
                                  [site](const Site& other) { return other.site == site; });
  if (known != sites_.end()) return known->object;
  if (!static_) {
    static_ = allocate(kStaticBytes);
    if (!static_) return nullptr;
    poison(static_.get(), kStaticBytes);
  }
  const std::size_t at = round_up(static_used_, std::max<std::size_t>(align, 16));
  if (align > kAlign || bytes > kStaticBytes || at > kStaticBytes - bytes) return nullptr;
  static_used_ = at + bytes + kRedZone;
  void* const object = static_.get() + at;
  unpoison(object, bytes);
  sites_.push_back({site, object});
  return object;
}

}  // namespace gimlet::device
