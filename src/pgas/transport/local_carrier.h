// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_LOCAL_CARRIER_H
#define GIMLET_PGAS_TRANSPORT_LOCAL_CARRIER_H

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "pgas/transport/carry_out.h"

namespace gimlet::pgas {

/// A carrier between ranks that are threads of one process: the posting thread does the work
/// itself, in the target's memory, so every request is complete when post() returns.
///
/// Ownership: what a rank offers is behind a lock that every access by others shares, which is why
/// nobody is inside once a removal has returned.
class LocalCarrier final : public Carrier, private TargetMemory {
 public:
  /// Shared by the ranks of one group.
  using Ranks = std::vector<LocalCarrier*>;

  LocalCarrier(const Ranks& ranks, int rank) : ranks_(ranks), rank_(rank) {}

  Status add_segment(std::byte* base, std::size_t size, SegmentNumber& number) override;
  void remove_segment(SegmentNumber number) override;
  Status add_listener(Listener listener, ListenerNumber& number) override;
  void remove_listener(ListenerNumber number) override;
  bool post(CarriedRequest& request) override;
  bool post_note(int rank, ListenerNumber listener, std::span<const std::byte> note) override;
  bool progress() override { return false; }

 private:
  struct Segment {
    std::byte* base = nullptr;
    std::size_t size = 0;  // 0: none
  };

  LocalCarrier& peer(int rank) const { return *ranks_[static_cast<std::size_t>(rank)]; }
  std::byte* locate(SegmentNumber segment, std::uint64_t offset,
                    std::uint64_t bytes) const override;
  std::uint64_t size_of(SegmentNumber segment) const override;
  bool serve(CarriedRequest& request, Refusal& refusal);
  void tell_refusal(ListenerNumber listener, const Refusal& refusal);

  const Ranks& ranks_;
  const int rank_;
  mutable std::shared_mutex mutex_;
  std::vector<Segment> segments_;
  std::vector<std::unique_ptr<Listener>> listeners_;
};

}  // namespace gimlet::pgas

#endif
