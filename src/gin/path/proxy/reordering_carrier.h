// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_PROXY_REORDERING_CARRIER_H
#define GIMLET_GIN_PATH_PROXY_REORDERING_CARRIER_H

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "pgas/transport/carrier.h"

namespace gimlet::gin {

/// Carries requests late and out of order, as far as the contract of Carrier lets it, to show what
/// a kernel takes for granted that nobody promised it.
///
/// Each request draws when it is released to another carrier, which then carries it at once, in the
/// order of the releases. A strong signal draws no earlier than the puts of its lane before it, and
/// a drain no earlier than everything before it; nothing else is ordered. The source of a put is
/// read late too: when it is released, or before, in which case the put completes, and its bytes
/// arrive some time after that. Completions that the other carrier reports are held back as well.
///
/// What is drawn follows from the seed, the ranks, the lane and the place of the request in its
/// lane, not from the time; what the threads of a kernel do meanwhile is theirs.
///
/// Ownership: one thread posts and moves it; the other carrier completes on any thread. The limits
/// of time are short, so a kernel that waits for nothing but a signal gets it.
class ReorderingCarrier final : public pgas::Carrier {
 public:
  ReorderingCarrier(std::unique_ptr<pgas::Carrier> inner, std::uint64_t seed, int rank)
      : inner_(std::move(inner)), seed_(seed), rank_(rank) {}

  /// Nothing is held back and nothing is under way.
  bool is_empty() const { return held_.empty(); }

  Status add_segment(std::byte* base, std::size_t size, pgas::SegmentNumber& number) override {
    return inner_->add_segment(base, size, number);
  }
  Status add_staged_segment(std::byte* base, std::size_t size, const device::MemoryKind& kind,
                            pgas::SegmentNumber& number) override {
    return inner_->add_staged_segment(base, size, kind, number);
  }
  void remove_segment(pgas::SegmentNumber number) override { inner_->remove_segment(number); }
  Status add_listener(Listener listener, pgas::ListenerNumber& number) override {
    return inner_->add_listener(std::move(listener), number);
  }
  void remove_listener(pgas::ListenerNumber number) override { inner_->remove_listener(number); }
  bool post(pgas::CarriedRequest& request) override;
  bool post_note(int rank, pgas::ListenerNumber listener,
                 std::span<const std::byte> note) override {
    return inner_->post_note(rank, listener, note);
  }
  /// True as well while anything is held back, so that its thread comes again.
  bool progress() override;
  std::uint64_t confirmations() const override { return inner_->confirmations(); }

 private:
  /// A request of the poster, and the one that the other carrier gets for it.
  struct Held {
    pgas::CarriedRequest carried;  // first: the other carrier hands this back
    ReorderingCarrier* carrier = nullptr;
    std::list<Held>::iterator place;
    pgas::CarriedRequest* original = nullptr;  // null: the poster has been told
    std::vector<std::byte> payload;            // of a put that completed before its release
    std::uint64_t tells_after_ns = 0;          // from the completion to the poster's
    Status status;
  };
  enum class Step : std::uint8_t { kRead, kRelease, kTell };
  struct Event {
    Held* held;
    Step step;
  };
  struct Lane {
    std::uint64_t posted = 0;
    std::uint64_t puts_released_ns = 0;  // the latest release of a put with payload, or an AMO
    std::uint64_t all_released_ns = 0;
  };

  std::uint64_t release_time(const Held& held, Lane& lane, std::uint64_t drawn) const;
  void advance_clock();
  bool take_completed();
  bool take_steps();
  bool take_step(const Event& event);
  void tell(Held& held);
  static void on_completed(pgas::CarriedRequest& carried, Status status);

  const std::unique_ptr<pgas::Carrier> inner_;
  const std::uint64_t seed_;
  const int rank_;
  std::map<std::pair<int, std::uint32_t>, Lane> lanes_;
  std::multimap<std::uint64_t, Event> events_;  // by time; those of the same time in their order
  std::list<Held> held_;       // until both the other carrier and the poster are done with it
  std::uint64_t time_ns_ = 0;  // of this carrier: runs while something is held
  std::uint64_t looked_ns_ = 0;
  std::mutex completed_mutex_;
  std::vector<Held*> completed_;
};

}  // namespace gimlet::gin

#endif
