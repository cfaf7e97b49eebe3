// SPDX-License-Identifier: BSD-3-Clause
// Requests of proxies to memory that no transport may touch: what a source sends, and how the
// target's StagingService is reached and answers. All of it under the token.
#include <algorithm>
#include <utility>

#include "pgas/transport/ucx_transport.h"

namespace gimlet::pgas::ucx {
namespace {

/// Pieces that a source asks for ahead, so that the next one is granted while one is sent.
constexpr std::uint64_t kMostAhead = 4;

std::uint64_t pieces_left(const CarriedRequest& request) {
  const std::uint64_t left = request.bytes - request.posted_bytes;
  return std::max<std::uint64_t>(1, (left + BouncePool::kPieceBytes - 1) / BouncePool::kPieceBytes);
}

/// Of the message that closes the next piece of a put, which has `bytes` bytes.
MessageHeader closing_header(const CarriedRequest& request, std::uint64_t bytes) {
  const std::uint64_t following = request.bytes - request.posted_bytes - bytes + request.following;
  const CarriedSignal& signal = request.signal;
  MessageHeader header =
      header_of(following != 0 ? MessageKind::kStagePart : MessageKind::kStagePut, request, 0);
  header.operand = following;
  if (!signal.present) return header;
  header.width = 8;
  header.word_segment = signal.segment;
  header.word_offset = signal.offset;
  if (following != 0) return header;
  header.op = static_cast<std::uint8_t>(update_of(signal.op));
  header.operand = signal.value;
  return header;
}

}  // namespace

Status UcxTransport::add_staged_segment(std::byte* base, std::size_t size,
                                        const device::MemoryKind& kind, SegmentNumber& number) {
  Turn turn(*this, Turn::Patience::kWait);
  if (staging_ == nullptr)
    GIMLET_TRY(StagingService::make(owner_.bounce_bytes, memory_, *this, staging_));
  if (memory_.staged()->add(base, size, kind, number)) return {};
  return fail(Code::kNoMemory, "at most {} pieces of staged memory can be offered at a time",
              kFirstStaged);
}

// ---- the source's end ----

/// A strong signal alone takes a piece too while others are not over: it is raised behind them.
/// Once it has asked for one it uses one, or another source might wait for it for ever.
bool UcxTransport::needs_piece(const Lane& lane, CarriedRequest& request) const {
  if (is_staged(request.segment) || request.awaits_piece) return true;
  if (!request.signal.strong || request.posted_bytes != 0) return false;
  if (request.after_pieces == 0) request.after_pieces = lane.staged.used;
  return lane.staged.over < request.after_pieces;
}

/// Uses a piece of the peer's. False: it has to grant one first, and is asked to.
bool UcxTransport::take_piece(Lane& lane, const CarriedRequest& request) {
  const auto wanted = static_cast<std::uint32_t>(std::min(pieces_left(request), kMostAhead));
  const std::uint32_t has = lane.staged.asked + lane.staged.granted;
  if (has < wanted) {
    Operation& op = operations_.take(OperationKind::kMessage, &lane, false);
    op.header = {};
    op.header.kind = MessageKind::kStageAsk;
    op.header.bytes = wanted - has;
    lane.staged.asked = wanted - lane.staged.granted;
    send(op, lane.endpoint, nullptr, 0, true);
  }
  if (lane.staged.granted == 0) return false;
  --lane.staged.granted;
  ++lane.staged.used;
  return true;
}

/// All messages of one piece at once: no other request may come between them.
void UcxTransport::send_rest(Lane& lane, CarriedRequest& request) {
  const std::uint64_t left = request.bytes - request.posted_bytes;
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(BouncePool::kPieceBytes, left));
  const MessageHeader closing = closing_header(request, bytes);
  const auto* from = static_cast<const std::byte*>(request.local) + request.posted_bytes;
  const auto limit = static_cast<std::uint32_t>(worker_.message_limit());
  for (std::uint32_t sent = 0;;) {
    const std::uint32_t length = std::min(limit, bytes - sent);
    const bool closes = sent + length == bytes;
    Operation& part = begin_part(OperationKind::kMessage, lane, request);
    part.header = closing;
    if (!closes) part.header.kind = MessageKind::kStageData;
    part.header.bytes = length;
    if (closes) request.posted_bytes += bytes;
    send(part, lane.endpoint, length == 0 ? nullptr : from + sent, length, closes);
    sent += length;
    if (closes || !lane.is(Lane::State::kReady)) return;
  }
}

/// The peer has said that it has no such memory at all. False: it hasn't.
bool UcxTransport::is_unknown(Lane& lane, CarriedRequest& request) {
  if (!std::exchange(lane.staged.refused, false)) return false;
  tell_refused(request, 0);
  ++request.open_parts;
  posted(request);
  return true;
}

bool UcxTransport::carry_staged_put(Lane& lane, CarriedRequest& request) {
  // Plain payload with a strong signal: it goes, all of it plain, when the copies before it are
  // over.
  if (!is_staged(request.segment) && request.bytes != 0) return false;
  if (is_unknown(lane, request)) return true;
  ++request.open_parts;
  bool over = request.bytes == 0 && !request.signal.present;
  while (!over && room(lane) && lane.is(Lane::State::kReady) && take_piece(lane, request)) {
    send_rest(lane, request);
    over = request.posted_bytes == request.bytes;
  }
  request.awaits_piece = !over;
  return carried_all(request, over);
}

bool UcxTransport::take_news(const MessageHeader& header) {
  Lane* lane = lanes_[static_cast<std::size_t>(header.source)].load(std::memory_order_relaxed);
  if (lane == nullptr || header.bytes > lane->staged.asked || header.operand > lane->staged.used)
    return false;
  lane->heard = true;
  lane->staged.asked -= header.bytes;
  if (header.refused != 0) {
    lane->staged.refused = true;
    return true;
  }
  lane->staged.granted += header.bytes;
  // News may come two ways, and pass each other.
  lane->staged.over = std::max(lane->staged.over, header.operand);
  finish_drains(*lane);
  return true;
}

/// Those whose messages are acknowledged and whose pieces are over.
void UcxTransport::finish_drains(Lane& lane) {
  for (Operation* next = lane.carried.after; lane.drains != 0 && next != &lane.carried;) {
    Operation& op = *std::exchange(next, next->after);
    if (op.kind == OperationKind::kDrain && op.sequence <= lane.acknowledged_to &&
        op.staged_to <= lane.staged.over)
      finish(op);
  }
}

// ---- the target's end ----

bool UcxTransport::serve_staged(const MessageHeader& header, const std::byte* data,
                                std::size_t length, ucp_ep_h reply_to) {
  const bool asks = header.kind == MessageKind::kStageAsk;
  if (staging_ == nullptr) {
    if (!asks || reply_to == nullptr) return false;
    MessageHeader answer = header;
    answer.kind = MessageKind::kStageNews;
    answer.refused = 1;
    answer.operand = 0;
    reply(reply_to, answer, nullptr, 0);
    return true;
  }
  if (header.kind != MessageKind::kStageRead && !asks && length != header.bytes) return false;
  served_ = header.source;
  served_way_ = reply_to;
  bool known = false;
  if (asks) {
    known = staging_->ask(header);
  } else if (header.kind == MessageKind::kStageData) {
    known = staging_->fill(header, data, length);
  } else {
    known = header.op <= static_cast<std::uint8_t>(AmoOp::kXor) &&
            staging_->close(header, data, length);
  }
  served_ = -1;
  served_way_ = nullptr;
  return known;
}

/// Null: there is none yet, and the next progress() makes a step towards it.
ucp_ep_h UcxTransport::way_to(int source) {
  if (source == served_ && served_way_ != nullptr) return served_way_;
  const Lane* lane = lanes_[static_cast<std::size_t>(source)].load(std::memory_order_relaxed);
  if (lane != nullptr && lane->is(Lane::State::kReady)) return lane->endpoint;
  unreached_.store(source, std::memory_order_relaxed);
  return nullptr;
}

bool UcxTransport::pump_staging() {
  unreached_.store(-1, std::memory_order_relaxed);
  return staging_->pump();
}

bool UcxTransport::send_news(int source, std::uint32_t granted, std::uint64_t over) {
  const ucp_ep_h way = way_to(source);
  if (way == nullptr) return false;
  MessageHeader news{};
  news.kind = MessageKind::kStageNews;
  news.bytes = granted;
  news.operand = over;
  reply(way, news, nullptr, 0);
  return true;
}

/// The answer to a read, from the piece itself, which is free when all of it is sent.
bool UcxTransport::send_piece(int source, BouncePiece& piece) {
  const ucp_ep_h way = way_to(source);
  if (way == nullptr) return false;
  const MessageHeader read = piece.header;
  const auto limit = static_cast<std::uint32_t>(worker_.message_limit());
  piece.sends = (read.bytes + limit - 1) / limit;
  for (std::uint32_t done = 0; done != read.bytes;) {
    Operation& op = operations_.take(OperationKind::kStageData, nullptr, false);
    op.piece = &piece;
    op.header = read;
    op.header.kind = MessageKind::kData;
    op.header.refused = 0;
    op.header.offset = done;
    op.header.bytes = std::min(limit, read.bytes - done);
    const std::byte* from = piece.memory + done;
    done += op.header.bytes;
    send(op, way, from, op.header.bytes, false);
  }
  return true;
}

void UcxTransport::send_refusal(const MessageHeader& request, std::uint64_t bytes) {
  if (request.kind != MessageKind::kRead) return refuse(request, bytes, served_way_);
  if (served_way_ != nullptr) reply_refused(served_way_, request);
}

bool UcxTransport::update_staged(const MessageHeader& header, std::uint64_t& old) {
  return memory_.staged()->is_word(header.segment, header.offset, header.width) &&
         memory_.staged()->update(header.segment, header.offset, header.width,
                                  static_cast<AmoOp>(header.op), header.operand, header.word_offset,
                                  old);
}

}  // namespace gimlet::pgas::ucx
