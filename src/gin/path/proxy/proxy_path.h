// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_PROXY_PROXY_PATH_H
#define GIMLET_GIN_PATH_PROXY_PROXY_PATH_H

#include <vector>

#include "gin/path/path.h"
#include "pgas/group.h"
#include "pgas/transport/carrier.h"

namespace gimlet::gin {

/// A proxy thread and a transport: ranks whose memory can't be mapped here. Every device
/// communicator has a Proxy of its own; this is what they share.
class ProxyPath final : public Path {
 public:
  /// What the transport calls a rank's part of a window.
  class Segments final : public Registration {
   public:
    explicit Segments(pgas::Carrier& carrier) : carrier_(carrier) {}
    ~Segments() override {
      if (is_offered_) carrier_.remove_segment(own_);
    }
    Status offer(std::byte* base, std::size_t bytes, const device::MemoryKind& kind);
    pgas::SegmentNumber own() const { return own_; }
    std::vector<pgas::SegmentNumber> by_rank;

   private:
    pgas::Carrier& carrier_;
    pgas::SegmentNumber own_ = 0;
    bool is_offered_ = false;
  };

  explicit ProxyPath(pgas::Group& group) : group_(group) {}

  /// Starts the transport. Without it, and after close(), the path reaches nobody.
  Status open();
  pgas::Carrier* carrier() const { return carrier_; }

  const char* name() const override { return "proxy"; }
  bool reaches(int rank, std::string* why_not) const override;
  Status connect(std::span<const int> ranks) override;
  Status register_memory(const device::Memory* mine, std::unique_ptr<Registration>& out) override;
  bool progress() override { return carrier_ != nullptr && carrier_->progress(); }
  void close() override { carrier_ = nullptr; }

  /// register_memory() for a part of a piece of memory, and for those who need the numbers.
  /// Collective.
  Status offer(std::byte* base, std::size_t bytes, const device::MemoryKind& kind,
               std::unique_ptr<Segments>& out);

 private:
  pgas::Group& group_;
  pgas::Carrier* carrier_ = nullptr;
};

}  // namespace gimlet::gin

#endif
