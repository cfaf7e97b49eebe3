// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_UNIT_LATE_MEMORY_H
#define GIMLET_TESTS_UNIT_LATE_MEMORY_H

#include <cstdint>
#include <deque>
#include <memory>

#include "device/guarded_memory.h"

namespace gimlet::tests {

/// Guarded memory as a GPU's is: copies are done some looks after they were started, and words are
/// reached by copies only.
class LateMemory final : public device::MemoryKind {
 public:
  const char* name() const override { return "late"; }
  bool is_host_accessible() const override { return false; }
  Status allocate(std::size_t, const char*, std::unique_ptr<device::Memory>&) const override {
    return fail(Code::kInvalidUsage, "not allocated");
  }
  Status import(UniqueFd, std::size_t, std::unique_ptr<device::Memory>&) const override {
    return fail(Code::kInvalidUsage, "not imported");
  }
  void copy(void* dest, const void* source, std::size_t bytes) const override {
    device::guarded_memory().copy(dest, source, bytes);
  }
  std::unique_ptr<device::CopyQueue> make_copy_queue() const override {
    return std::make_unique<Queue>();
  }

 private:
  class Queue final : public device::CopyQueue {
   public:
    ~Queue() override {
      while (!copies_.empty()) do_oldest();
    }
    std::uint64_t start(void* dest, const void* source, std::size_t bytes) override {
      copies_.push_back({dest, source, bytes});
      return finished_ + copies_.size();
    }
    std::uint64_t finished() override {
      constexpr unsigned kLooks = 5;
      if (!copies_.empty() && ++looks_ % kLooks == 0) do_oldest();
      return finished_;
    }

   private:
    struct Copy {
      void* dest;
      const void* source;
      std::size_t bytes;
    };
    void do_oldest() {
      const Copy& oldest = copies_.front();
      device::guarded_memory().copy(oldest.dest, oldest.source, oldest.bytes);
      copies_.pop_front();
      ++finished_;
    }

    std::deque<Copy> copies_;
    std::uint64_t finished_ = 0;
    unsigned looks_ = 0;
  };
};

inline const LateMemory& late_memory() {
  static const LateMemory kind;
  return kind;
}

}  // namespace gimlet::tests

#endif
