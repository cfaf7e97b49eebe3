// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_LOCAL_CARRIER_H
#define GIMLET_PGAS_TRANSPORT_LOCAL_CARRIER_H

#include <shared_mutex>
#include <vector>

#include "pgas/transport/carrier.h"
#include "pgas/transport/listener_table.h"
#include "pgas/transport/ucx_memory.h"

namespace gimlet::pgas {

/// A carrier between ranks that are threads of one process: the posting thread does the work
/// itself, in the target's memory, so every request is complete when post() returns.
///
/// Ownership: what a rank offers is behind a lock that every access by others shares, which is why
/// nobody is inside once a removal has returned. It belongs to the group: a rank may still be asked
/// when its carrier is gone, and offers nothing then.
class LocalCarrier final : public Carrier {
 public:
  class Offers {
   private:
    friend class LocalCarrier;
    std::shared_mutex mutex;
    ucx::ServedMemory memory{{}};
    ListenerTable listeners;
  };
  /// Of all ranks of one group, by rank.
  using Ranks = std::vector<Offers>;

  LocalCarrier(Ranks& ranks, int rank) : ranks_(ranks), rank_(rank) {}

  Status add_segment(std::byte* base, std::size_t size, SegmentNumber& number) override;
  Status add_staged_segment(std::byte* base, std::size_t size, const device::MemoryKind& kind,
                            SegmentNumber& number) override;
  void remove_segment(SegmentNumber number) override;
  Status add_listener(Listener listener, ListenerNumber& number) override;
  void remove_listener(ListenerNumber number) override;
  bool post(CarriedRequest& request) override;
  bool post_note(int rank, ListenerNumber listener, std::span<const std::byte> note) override;
  bool progress() override { return false; }

 private:
  Offers& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  bool carry_out(CarriedRequest& request, Refusal& refusal);
  void tell_refused(ListenerNumber listener, const Refusal& refusal);

  Ranks& ranks_;
  const int rank_;
};

}  // namespace gimlet::pgas

#endif
