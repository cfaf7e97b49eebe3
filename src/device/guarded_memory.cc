// SPDX-License-Identifier: BSD-3-Clause
#include "device/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace gimlet::device {
namespace {

/// What is behind the guarded addresses of this process.
class Ranges {
 public:
  static Ranges& of_process() {
    static Ranges ranges;
    return ranges;
  }
  void add(std::byte* base, std::byte* real, std::size_t bytes) {
    const std::unique_lock lock(mutex_);
    by_base_[base] = {real, bytes};
  }
  void remove(std::byte* base) {
    const std::unique_lock lock(mutex_);
    by_base_.erase(base);
  }
  /// An address that is not guarded stands for itself.
  std::byte* resolve(std::byte* address) const {
    const std::shared_lock lock(mutex_);
    const auto after = by_base_.upper_bound(address);
    if (after == by_base_.begin()) return address;
    const auto& [base, range] = *std::prev(after);
    const auto offset = static_cast<std::size_t>(address - base);
    return offset < range.bytes ? range.real + offset : address;
  }

 private:
  struct Range {
    std::byte* real;
    std::size_t bytes;
  };
  mutable std::shared_mutex mutex_;
  std::map<std::byte*, Range> by_base_;
};

/// True when the word was copied by one store; release, as for all that kernels poll.
template <class Word>
bool copy_word(std::byte* dest, const std::byte* source) {
  const auto place = reinterpret_cast<std::uintptr_t>(dest);
  const auto from = reinterpret_cast<std::uintptr_t>(source);
  Word value;
  if (from % sizeof value == 0) {
    value = __atomic_load_n(reinterpret_cast<const Word*>(source), __ATOMIC_ACQUIRE);
  } else {
    std::memcpy(&value, source, sizeof value);
  }
  if (place % sizeof value != 0) return false;
  __atomic_store_n(reinterpret_cast<Word*>(dest), value, __ATOMIC_RELEASE);
  return true;
}

void copy_bytes(std::byte* dest, const std::byte* source, std::size_t bytes) {
  switch (bytes) {
    case 0:
      return;
    case 1:
      if (copy_word<std::uint8_t>(dest, source)) return;
      break;
    case 2:
      if (copy_word<std::uint16_t>(dest, source)) return;
      break;
    case 4:
      if (copy_word<std::uint32_t>(dest, source)) return;
      break;
    case 8:
      if (copy_word<std::uint64_t>(dest, source)) return;
      break;
    default:
      break;
  }
  std::memcpy(dest, source, bytes);
}

class GuardedMemoryKind final : public MemoryKind {
 public:
  const char* name() const override { return "guarded"; }
  bool is_host_accessible() const override { return false; }
  Status allocate(std::size_t, const char* label, std::unique_ptr<Memory>&) const override {
    return fail(Code::kInvalidUsage, "{} can't be allocated as guarded memory", label);
  }
  Status import(UniqueFd, std::size_t, std::unique_ptr<Memory>&) const override {
    return fail(Code::kInvalidUsage, "guarded memory can't be imported");
  }
  void copy(void* dest, const void* source, std::size_t bytes) const override {
    const Ranges& ranges = Ranges::of_process();
    copy_bytes(ranges.resolve(static_cast<std::byte*>(dest)),
               ranges.resolve(static_cast<std::byte*>(const_cast<void*>(source))), bytes);
  }
  std::byte* host_word(std::byte* word) const override {
    return Ranges::of_process().resolve(word);
  }
};

}  // namespace

Status GuardedRange::make(std::byte* real, std::size_t bytes, std::unique_ptr<GuardedRange>& out) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t shift = reinterpret_cast<std::uintptr_t>(real) % page;
  std::unique_ptr<GuardedRange> made(new GuardedRange);
  made->pages_bytes_ = shift + (bytes == 0 ? 1 : bytes);
  void* const pages = ::mmap(nullptr, made->pages_bytes_, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return fail_errno(errno, "reserving {} bytes of addresses failed", bytes);
  made->pages_ = pages;
  made->base_ = static_cast<std::byte*>(pages) + shift;
  Ranges::of_process().add(made->base_, real, bytes);
  out = std::move(made);
  return {};
}

GuardedRange::~GuardedRange() {
  if (pages_ == nullptr) return;
  Ranges::of_process().remove(base_);
  ::munmap(pages_, pages_bytes_);
}

const MemoryKind& guarded_memory() {
  static const GuardedMemoryKind kind;
  return kind;
}

}  // namespace gimlet::device
