// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_MEMORY_KIND_H
#define GIMLET_DEVICE_MEMORY_KIND_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/status.h"
#include "device/unique_fd.h"

namespace gimlet::device {

class MemoryKind;

/// A mapped piece of memory: allocated here, or imported from another process of the node.
/// The destructor unmaps it; the bytes live until the last mapping and descriptor are gone.
class Memory {
 public:
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* base() const { return base_; }
  std::size_t size() const { return size_; }
  const MemoryKind& kind() const { return kind_; }
  /// A new descriptor that another process can import. The caller owns it.
  virtual Status export_fd(UniqueFd& out) const = 0;

 protected:
  Memory(const MemoryKind& kind, std::byte* base, std::size_t size)
      : kind_(kind), base_(base), size_(size) {}

 private:
  const MemoryKind& kind_;
  std::byte* base_;
  std::size_t size_;
};

/// Copies that go on by themselves, one behind the other; of one user at a time. Where a copy
/// engine does them this is a stream of its own. A queue goes when its copies are over.
class CopyQueue {
 public:
  virtual ~CopyQueue() = default;
  /// Starts a copy between memory of the kind and plain host memory; both stay in place until it is
  /// over. Returns its number, one more than that of the copy before. An aligned place of 1, 2, 4
  /// or 8 bytes is written by a single store.
  virtual std::uint64_t start(void* dest, const void* source, std::size_t bytes) = 0;
  /// All copies up to this number are over. Never waits.
  virtual std::uint64_t finished() = 0;
};

/// A place where memory can live. Implementations: host (memfd), guarded, later cuda.
class MemoryKind {
 public:
  /// No base is sure to be aligned to more than this, however large the memory.
  static constexpr std::size_t kLargestAlignment = std::size_t{1} << 30;

  virtual ~MemoryKind() = default;
  virtual const char* name() const = 0;
  virtual bool is_host_accessible() const = 0;
  /// At least `bytes`, rounded up to pages, zero; pages are touched on first use. The base is
  /// aligned to the largest power of two in the size (at least a page, at most 1 GiB). `label`
  /// shows in /proc/PID/maps.
  virtual Status allocate(std::size_t bytes, const char* label,
                          std::unique_ptr<Memory>& out) const = 0;
  /// Maps all `bytes` of a descriptor that export_fd() of the same kind made, in this or another
  /// process.
  virtual Status import(UniqueFd fd, std::size_t bytes, std::unique_ptr<Memory>& out) const = 0;
  /// Copies between two pieces of this kind, or between this kind and plain host memory.
  virtual void copy(void* dest, const void* source, std::size_t bytes) const = 0;

  /// May transports, and the threads that serve them, load, store and register such memory?
  /// Otherwise its addresses are good for the copies of its kind only, and it is staged.
  virtual bool is_open_to_transports() const { return is_host_accessible(); }
  /// The default does every copy at once, by copy().
  virtual std::unique_ptr<CopyQueue> make_copy_queue() const;
  /// Where atomic instructions of this CPU reach a word of such memory. Null: nowhere, a word is
  /// updated by copies.
  virtual std::byte* host_word(std::byte* word) const {
    return is_host_accessible() ? word : nullptr;
  }
};

/// memfd, MAP_SHARED: loads and stores of every process of the node that imports it.
const MemoryKind& host_memory();

/// Every kind that is not open to transports.
std::span<const MemoryKind* const> staged_kinds();

}  // namespace gimlet::device

#endif
