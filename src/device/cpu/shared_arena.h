// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_SHARED_ARENA_H
#define GIMLET_DEVICE_CPU_SHARED_ARENA_H

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace gimlet::device {

/// Block-shared memory: the declared objects, found by the address of their declaration, and the
/// dynamic part. Kept with its block for the next launch. Not thread-safe.
class SharedArena {
 public:
  static constexpr std::size_t kStaticBytes = 48 * 1024;
  static constexpr std::size_t kDynamicBytes = 227 * 1024;
  static constexpr std::size_t kAlign = 128;

  ~SharedArena();
  SharedArena() = default;
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  /// For a new block. False: no memory.
  [[nodiscard]] bool reset(std::size_t dynamic_bytes);
  /// The object of `site`, placed on first use; nullptr when the static part is full or there is no
  /// memory for it.
  void* object(const void* site, std::size_t bytes, std::size_t align);
  /// nullptr if the launch asked for none.
  void* dynamic() const { return dynamic_bytes_ == 0 ? nullptr : dynamic_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Buffer = std::unique_ptr<std::byte, Free>;
  struct Site {
    const void* site;
    void* object;
  };
  static Buffer allocate(std::size_t bytes);

  std::vector<Site> sites_;
  Buffer static_;
  std::size_t static_used_ = 0;
  Buffer dynamic_;
  std::size_t dynamic_bytes_ = 0;
  std::size_t dynamic_capacity_ = 0;
};

}  // namespace gimlet::device

#endif
