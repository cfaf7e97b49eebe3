// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_DIRECT_MAPPED_CARRIER_H
#define GIMLET_GIN_PATH_DIRECT_MAPPED_CARRIER_H

#include <vector>

#include "gin/impl/tables.h"
#include "pgas/transport/carry_out.h"

namespace gimlet::gin {

/// A carrier to ranks whose memory is mapped: the posting thread stores and loads in their parts of
/// windows, and a segment is the number of a window. Requests to all other ranks, and everything
/// else, are another carrier's.
class MappedCarrier final : public pgas::Carrier {
 public:
  struct Setup {
    const ginWindowEntry* windows = nullptr;
    std::uint32_t capacity = 0;        // of the table of windows
    std::vector<std::uint32_t> slots;  // by rank; GIN_PROXY_SLOT: of the other carrier
    pgas::Carrier* others = nullptr;   // null: there are no other ranks
  };
  explicit MappedCarrier(Setup setup) : setup_(std::move(setup)) {}

  Status add_segment(std::byte* base, std::size_t size, pgas::SegmentNumber& number) override;
  Status add_staged_segment(std::byte* base, std::size_t size, const device::MemoryKind& kind,
                            pgas::SegmentNumber& number) override;
  void remove_segment(pgas::SegmentNumber number) override;
  /// One listener at a time, which hears of all requests.
  Status add_listener(Listener listener, pgas::ListenerNumber& number) override;
  void remove_listener(pgas::ListenerNumber number) override;
  bool post(pgas::CarriedRequest& request) override;
  bool post_note(int rank, pgas::ListenerNumber listener, std::span<const std::byte> note) override;
  bool progress() override { return setup_.others != nullptr && setup_.others->progress(); }

 private:
  const Setup setup_;
  Listener listener_;
};

}  // namespace gimlet::gin

#endif
