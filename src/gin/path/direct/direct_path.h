// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_DIRECT_DIRECT_PATH_H
#define GIMLET_GIN_PATH_DIRECT_DIRECT_PATH_H

#include "gin/path/path.h"
#include "pgas/group.h"

namespace gimlet::gin {

/// Loads and stores of the device threads themselves: ranks whose memory can be mapped here. There
/// is nothing to connect and nothing to progress.
class DirectPath final : public Path {
 public:
  /// Mapped memory of the other ranks.
  class Mapping final : public Registration {
   public:
    pgas::Group::PeerMemory peers;
  };

  /// `span` 0: no limit; otherwise ranks that are in different groups of `span` consecutive ranks
  /// count as not mappable.
  DirectPath(pgas::Group& group, std::uint64_t span) : group_(group), span_(span) {}

  const char* name() const override { return "direct"; }
  bool reaches(int rank, std::string* why_not) const override;
  Status connect(std::span<const int> ranks) override;
  Status register_memory(const device::Memory* mine, std::unique_ptr<Registration>& out) override;
  bool progress() override { return false; }
  void close() override {}

  /// register_memory() for those who need the addresses.
  Status map(const device::Memory* mine, std::unique_ptr<Mapping>& out);

 private:
  pgas::Group& group_;
  const std::uint64_t span_;
};

}  // namespace gimlet::gin

#endif
