// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/staging_carrier.h"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace gimlet::pgas {

Status StagingCarrier::make(std::size_t bytes, Carrier& inner,
                            std::span<const device::MemoryKind* const> kinds,
                            std::unique_ptr<StagingCarrier>& out) {
  std::unique_ptr<StagingCarrier> made(new StagingCarrier(inner));
  GIMLET_TRY(BouncePool::make(bytes, "gimlet-bounce-source", made->pool_));
  for (const device::MemoryKind* kind : kinds)
    made->engines_.push_back({kind, kind->make_copy_queue()});
  made->pieces_ = std::vector<Piece>(made->pool_->count());
  out = std::move(made);
  return {};
}

device::CopyQueue& StagingCarrier::queue_of(const device::MemoryKind& kind) {
  for (Engine& engine : engines_)
    if (engine.kind == &kind) return *engine.queue;
  return *engines_.emplace_back(Engine{&kind, kind.make_copy_queue()}).queue;
}

bool StagingCarrier::post_staged(CarriedRequest& request) {
  if (request.bytes == 0) {
    request.local_kind = nullptr;
    return inner_.post(request);
  }
  if (request.kind == CarriedRequest::Kind::kGet) return post_get(request);
  return post_put(request);
}

/// Null: none is free, or the rank has its share.
StagingCarrier::Piece* StagingCarrier::take_piece(CarriedRequest& request) {
  if (!pool_->has_free()) return nullptr;
  const auto held = std::ranges::count_if(pieces_, [&](const Piece& piece) {
    return piece.state != Piece::State::kFree && piece.carried.rank == request.rank;
  });
  if (static_cast<std::size_t>(held) >= std::max<std::size_t>(1, pieces_.size() / 2))
    return nullptr;
  Piece& piece = *std::ranges::find(pieces_, Piece::State::kFree, &Piece::state);
  piece.memory = pool_->take();
  piece.carrier = this;
  piece.whole = &request;
  piece.queue = &queue_of(*request.local_kind);
  piece.place = static_cast<std::byte*>(request.local) + request.posted_bytes;
  piece.status = {};
  CarriedRequest& carried = piece.carried;
  carried = {};
  carried.kind = request.kind;
  carried.segment = request.segment;
  carried.rank = request.rank;
  carried.lane = request.lane;
  carried.offset = request.offset + request.posted_bytes;
  if (carried.offset < request.offset) carried.offset = ~std::uint64_t{0};  // past every end
  carried.local = piece.memory;
  carried.bytes =
      std::min<std::uint64_t>(BouncePool::kPieceBytes, request.bytes - request.posted_bytes);
  carried.listener = request.listener;
  carried.completed = &StagingCarrier::on_completed;
  ++out_;
  return &piece;
}

void StagingCarrier::free(Piece& piece) {
  piece.state = Piece::State::kFree;
  pool_->give_back(piece.memory);
  --out_;
}

// Of a request of the poster, `posted_bytes` counts the bytes that have had a piece.

void StagingCarrier::start_copies(CarriedRequest& request) {
  while (request.posted_bytes != request.bytes) {
    Piece* const piece = take_piece(request);
    if (piece == nullptr) return;
    CarriedRequest& carried = piece->carried;
    request.posted_bytes += carried.bytes;
    ++request.open_parts;
    carried.following = request.bytes - request.posted_bytes;
    carried.signal = request.signal;
    // Behind the pieces before it, too.
    carried.signal.strong |= carried.bytes != request.bytes;
    piece->order = ++order_;
    piece->copy = piece->queue->start(piece->memory, piece->place, carried.bytes);
    piece->state = Piece::State::kCopying;
  }
}

StagingCarrier::Piece* StagingCarrier::oldest_unposted(const CarriedRequest& request) {
  Piece* oldest = nullptr;
  for (Piece& piece : pieces_) {
    if (piece.state != Piece::State::kCopying || piece.whole != &request) continue;
    if (oldest == nullptr || piece.order < oldest->order) oldest = &piece;
  }
  return oldest;
}

/// False: no room. It may be complete when this returns.
bool StagingCarrier::post_piece(Piece& piece) {
  const Piece::State before = std::exchange(piece.state, Piece::State::kPosted);
  if (inner_.post(piece.carried)) return true;
  piece.state = before;
  return false;
}

bool StagingCarrier::post_put(CarriedRequest& request) {
  start_copies(request);
  for (;;) {
    Piece* const piece = oldest_unposted(request);
    if (piece == nullptr) break;
    if (!is_over(*piece) || !post_piece(*piece)) return false;
  }
  if (request.posted_bytes != request.bytes) return false;
  posted(request);
  return true;
}

bool StagingCarrier::post_get(CarriedRequest& request) {
  while (request.posted_bytes != request.bytes) {
    Piece* piece = oldest_unposted(request);  // one that found no room before
    if (piece == nullptr) {
      piece = take_piece(request);
      if (piece == nullptr) return false;
      piece->state = Piece::State::kCopying;  // waits to be posted
    }
    const std::uint64_t bytes = piece->carried.bytes;
    ++request.open_parts;
    if (!post_piece(*piece)) {
      --request.open_parts;
      return false;
    }
    request.posted_bytes += bytes;
  }
  posted(request);
  return true;
}

/// All pieces are with the other carrier. One part, which ends here, stands for that.
void StagingCarrier::posted(CarriedRequest& request) {
  request.is_posted = true;
  ++request.open_parts;
  end_part(request, {});
}

/// The request may be gone after it.
void StagingCarrier::end_part(CarriedRequest& request, Status status) {
  if (request.failure.ok()) request.failure = std::move(status);
  if (--request.open_parts != 0 || !request.is_posted) return;
  request.completed(request, std::exchange(request.failure, {}));
}

/// On any thread. Release: what the completion brought is seen by take_completed().
void StagingCarrier::on_completed(CarriedRequest& carried, Status status) {
  auto& piece = reinterpret_cast<Piece&>(carried);
  std::atomic<Piece*>& completed = piece.carrier->completed_;
  piece.status = std::move(status);
  piece.next_completed = completed.load(std::memory_order_relaxed);
  while (!completed.compare_exchange_weak(piece.next_completed, &piece, std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
}

bool StagingCarrier::take_completed() {
  if (completed_.load(std::memory_order_relaxed) == nullptr) return false;
  Piece* next = completed_.exchange(nullptr, std::memory_order_acquire);
  while (next != nullptr) {
    Piece& piece = *next;
    next = piece.next_completed;
    if (piece.carried.kind == CarriedRequest::Kind::kGet && piece.status.ok() &&
        !piece.carried.is_refused) {
      piece.copy = piece.queue->start(piece.place, piece.memory, piece.carried.bytes);
      piece.state = Piece::State::kLanding;
      continue;
    }
    CarriedRequest& whole = *piece.whole;
    Status status = std::exchange(piece.status, {});
    free(piece);
    end_part(whole, std::move(status));
  }
  return true;
}

bool StagingCarrier::take_landed() {
  bool moved = false;
  for (Piece& piece : pieces_) {
    if (piece.state != Piece::State::kLanding || !is_over(piece)) continue;
    CarriedRequest& whole = *piece.whole;
    free(piece);
    end_part(whole, {});
    moved = true;
  }
  return moved;
}

bool StagingCarrier::progress() {
  bool moved = inner_.progress();
  if (out_ == 0) return moved;
  moved |= take_completed();
  moved |= take_landed();
  if (!moved) ::sched_yield();
  return true;
}

}  // namespace gimlet::pgas
