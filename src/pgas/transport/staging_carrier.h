// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_STAGING_CARRIER_H
#define GIMLET_PGAS_TRANSPORT_STAGING_CARRIER_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pgas/transport/bounce_pool.h"
#include "pgas/transport/carrier.h"

namespace gimlet::pgas {

/// The source's end of staging: carries requests whose source or destination here no transport may
/// touch (CarriedRequest::local_kind), through bounce memory, by another carrier. All other
/// requests pass as they are.
///
/// A put is copied into pieces of 256 KiB, as many at a time as are free, and each piece goes on as
/// a put of its own when its copy is over. A get brings pieces, and each is copied to its place.
/// The target's end, where the segment is staged too, is the other carrier's.
///
/// Order. post() returns false until all pieces of a put are with the other carrier, so nothing of
/// the lane passes them. The signal goes with the last piece, as a strong one when there are
/// others: then it is behind all of them. Every piece but the last tells how much follows, so the
/// target refuses all of a put or nothing.
///
/// Ownership. The pool is this object's: fixed, and nothing that comes in needs it. A piece belongs
/// to a request until the other carrier has completed it, and for a get until its copy is over. One
/// rank holds at most half of the pieces, and one at least, so that a peer which stands still
/// leaves some to the others. A put is complete when its pieces are.
///
/// Failure. A piece that fails fails its request; the others are completed first.
///
/// One thread posts and moves it; the other carrier completes on any thread.
class StagingCarrier final : public Carrier {
 public:
  /// `kinds`: those that `local_kind` may name. Of `inner` only what is moved by progress().
  static Status make(std::size_t bytes, Carrier& inner,
                     std::span<const device::MemoryKind* const> kinds,
                     std::unique_ptr<StagingCarrier>& out);

  /// No piece is out.
  bool is_empty() const { return out_ == 0; }

  Status add_segment(std::byte* base, std::size_t size, SegmentNumber& number) override {
    return inner_.add_segment(base, size, number);
  }
  Status add_staged_segment(std::byte* base, std::size_t size, const device::MemoryKind& kind,
                            SegmentNumber& number) override {
    return inner_.add_staged_segment(base, size, kind, number);
  }
  void remove_segment(SegmentNumber number) override { inner_.remove_segment(number); }
  Status add_listener(Listener listener, ListenerNumber& number) override {
    return inner_.add_listener(std::move(listener), number);
  }
  void remove_listener(ListenerNumber number) override { inner_.remove_listener(number); }
  bool post(CarriedRequest& request) override {
    return request.local_kind == nullptr ? inner_.post(request) : post_staged(request);
  }
  bool post_note(int rank, ListenerNumber listener, std::span<const std::byte> note) override {
    return inner_.post_note(rank, listener, note);
  }
  /// True as well while a piece is out, so that its thread comes again.
  bool progress() override;
  std::uint64_t confirmations() const override { return inner_.confirmations(); }

 private:
  /// What a piece of bounce memory is used for.
  struct Piece {
    enum class State : std::uint8_t { kFree, kCopying, kPosted, kLanding };
    CarriedRequest carried;  // first: the other carrier hands this back
    StagingCarrier* carrier = nullptr;
    std::byte* memory = nullptr;
    CarriedRequest* whole = nullptr;
    void* place = nullptr;    // of its bytes in the memory that is staged
    std::uint64_t order = 0;  // of the pieces of a put
    std::uint64_t copy = 0;   // number of the copy
    device::CopyQueue* queue = nullptr;
    State state = State::kFree;
    Status status;
    Piece* next_completed = nullptr;
  };
  struct Engine {
    const device::MemoryKind* kind;
    std::unique_ptr<device::CopyQueue> queue;
  };

  explicit StagingCarrier(Carrier& inner) : inner_(inner) {}

  device::CopyQueue& queue_of(const device::MemoryKind& kind);
  bool post_staged(CarriedRequest& request);
  bool post_put(CarriedRequest& request);
  bool post_get(CarriedRequest& request);
  Piece* take_piece(CarriedRequest& request);
  void start_copies(CarriedRequest& request);
  Piece* oldest_unposted(const CarriedRequest& request);
  bool is_over(const Piece& piece) const { return piece.queue->finished() >= piece.copy; }
  bool post_piece(Piece& piece);
  void posted(CarriedRequest& request);
  void end_part(CarriedRequest& request, Status status);
  static void on_completed(CarriedRequest& carried, Status status);
  bool take_completed();
  bool take_landed();
  void free(Piece& piece);

  Carrier& inner_;
  std::unique_ptr<BouncePool> pool_;
  std::vector<Engine> engines_;
  std::vector<Piece> pieces_;  // as many as the pool has
  std::size_t out_ = 0;        // pieces that are not free
  std::uint64_t order_ = 0;
  std::atomic<Piece*> completed_{nullptr};
};

}  // namespace gimlet::pgas

#endif
