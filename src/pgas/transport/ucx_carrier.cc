// SPDX-License-Identifier: BSD-3-Clause
// Requests of proxies. All of them are messages, so the order of a lane is that of the endpoint: a
// strong signal needs nothing that a weak one does not.
#include <algorithm>
#include <cstring>
#include <utility>

#include "device/clock.h"
#include "pgas/transport/carry_out.h"
#include "pgas/transport/ucx_transport.h"

namespace gimlet::pgas::ucx {
namespace {

constexpr std::uint64_t kTryAgainNs = 1'000'000;

/// Of the next part of a put, which may be its signal alone.
MessageHeader put_header(const CarriedRequest& request, std::uint32_t bytes) {
  const std::uint64_t following = request.bytes - request.posted_bytes - bytes + request.following;
  MessageHeader header = header_of(MessageKind::kPut, request, bytes);
  header.operand = following;
  const CarriedSignal& signal = request.signal;
  if (!signal.present) return header;
  header.width = 8;
  header.word_segment = signal.segment;
  header.word_offset = signal.offset;
  if (following != 0) return header;
  header.kind = MessageKind::kPutSignal;
  header.op = static_cast<std::uint8_t>(update_of(signal.op));
  header.operand = signal.value;
  return header;
}

}  // namespace

MessageHeader header_of(MessageKind kind, const CarriedRequest& request, std::uint32_t bytes) {
  MessageHeader header{};
  header.kind = kind;
  header.segment = request.segment;
  header.offset = request.offset + request.posted_bytes;
  if (header.offset < request.offset) header.offset = ~std::uint64_t{0};
  header.bytes = bytes;
  header.ticket = told_by(request.listener);
  return header;
}

Status UcxTransport::add_segment(std::byte* base, std::size_t size, SegmentNumber& number) {
  Turn turn(*this, Turn::Patience::kWait);
  if (memory_.add({base, size}, number)) return {};
  return fail(Code::kNoMemory, "at most {} pieces of memory can be offered at a time",
              kFirstStaged);
}

void UcxTransport::remove_segment(SegmentNumber number) {
  Turn turn(*this, Turn::Patience::kWait);
  memory_.remove(number);
}

Status UcxTransport::add_listener(Listener listener, ListenerNumber& number) {
  Turn turn(*this, Turn::Patience::kWait);
  return listeners_.add(std::move(listener), number);
}

void UcxTransport::remove_listener(ListenerNumber number) {
  Turn turn(*this, Turn::Patience::kWait);
  listeners_.remove(number);
}

/// The lane to a rank once it is connected, else null; one step towards that is made.
Lane* UcxTransport::try_reach(int rank, Status& failed) {
  std::atomic<Lane*>& entry = lanes_[static_cast<std::size_t>(rank)];
  Lane* lane = entry.load(std::memory_order_acquire);
  if (lane == nullptr) {
    Turn turn(*this, Turn::Patience::kWait);
    lane = make_lane(rank);
  }
  // Acquire takes try_open's release store.
  switch (lane->state.load(std::memory_order_acquire)) {
    case Lane::State::kReady:
      return lane;
    case Lane::State::kFailed: {
      Turn turn(*this, Turn::Patience::kWait);
      failed = fail(Code::kRemote, "{}", lane->why_failed);
      return nullptr;
    }
    default:
      break;
  }
  const std::uint64_t now = device::now_ns();
  {
    Turn turn(*this, Turn::Patience::kWait);
    if (now - lane->tried_ns < kTryAgainNs) return nullptr;
    lane->tried_ns = now;
    if (lane->wanted_ns == 0) lane->wanted_ns = now;
  }
  std::vector<std::byte> blob;
  Status why;
  const TransportOwner::Lookup found = owner_.find_blob(rank, blob, why);
  if (found == TransportOwner::Lookup::kReady) {
    open_endpoint(*lane, blob);
    return nullptr;
  }
  if (found == TransportOwner::Lookup::kFailed) {
    Turn turn(*this, Turn::Patience::kWait);
    fail_lane(*lane, fmt::format("PE {} can't be reached: {}", rank, why.message()));
    return nullptr;
  }
  if (!look_around(*lane, now - lane->wanted_ns).ok()) return nullptr;  // told by the next call
  return nullptr;
}

bool UcxTransport::post(CarriedRequest& request) {
  if (request.rank == owner_.rank) {
    carry_to_self(request);
    return true;
  }
  Status failed;
  Lane* lane = try_reach(request.rank, failed);
  if (lane == nullptr && failed.ok()) return false;
  bool done = true;
  {
    Turn turn(*this, Turn::Patience::kTry);
    if (!turn) return false;
    if (lane != nullptr && lane->is(Lane::State::kFailed))
      failed = fail(Code::kRemote, "{}", lane->why_failed);
    if (failed.ok()) {
      done = lane->heard ? carry(*lane, request) : greet(*lane);
    } else {
      // Parts that were posted before may still be open; the last one completes the request.
      ++request.open_parts;
      posted(request, std::move(failed));
    }
  }
  leave();
  return done;
}

/// Nothing is carried before the peer has answered once. False. UCX 1.13 with UCX_PROTO_ENABLE=y
/// overruns its stack when a short message with a reply address opens a connection, unless it is
/// all header.
bool UcxTransport::greet(Lane& lane) {
  if (lane.asked_to != 0) return false;
  ++sequence_;
  ask_done(lane);
  return false;
}

/// A request to this PE itself. Others have the token between the steps of a long copy.
void UcxTransport::carry_to_self(CarriedRequest& request) {
  for (;;) {
    Turn turn(*this, Turn::Patience::kWait);
    Refusal refusal;
    const CarryStep step = carry_step(request, memory_, refusal);
    if (step == CarryStep::kMore) continue;
    if (step == CarryStep::kRefused) {
      request.is_refused = true;
      tell_refused(request.listener, refusal);
    }
    ++request.open_parts;
    return posted(request);
  }
}

bool UcxTransport::carry(Lane& lane, CarriedRequest& request) {
  lane.owes_quiet = true;
  switch (request.kind) {
    case CarriedRequest::Kind::kPut:
      return carry_put(lane, request);
    case CarriedRequest::Kind::kGet:
      return carry_get(lane, request);
    case CarriedRequest::Kind::kAmo:
      return carry_amo(lane, request);
    case CarriedRequest::Kind::kDrain:
      return carry_drain(lane, request);
  }
  return true;
}

Operation& UcxTransport::begin_part(OperationKind kind, Lane& lane, CarriedRequest& request) {
  ++request.open_parts;
  return begin(kind, lane, false, &request);
}

/// The request may be gone after it.
void UcxTransport::end_part(CarriedRequest& request, Status status) {
  if (request.failure.ok()) request.failure = std::move(status);
  if (--request.open_parts != 0 || !request.is_posted) return;
  request.completed(request, std::exchange(request.failure, {}));
}

/// Nothing more of a request will be posted. Parts may be over already, so one, which ends here,
/// stands for "being posted".
void UcxTransport::posted(CarriedRequest& request, Status status) {
  request.is_posted = true;
  end_part(request, std::move(status));
}

bool UcxTransport::carry_put(Lane& lane, CarriedRequest& request) {
  if (needs_piece(lane, request)) return carry_staged_put(lane, request);
  ++request.open_parts;
  bool over = request.bytes == 0 && !request.signal.present;
  while (!over && room(lane) && lane.is(Lane::State::kReady)) {
    const std::uint64_t left = request.bytes - request.posted_bytes;
    const auto length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(left, worker_.message_limit()));
    Operation& part = begin_part(OperationKind::kMessage, lane, request);
    part.header = put_header(request, length);
    const auto* from = static_cast<const std::byte*>(request.local) + request.posted_bytes;
    request.posted_bytes += length;
    over = length == left;
    send(part, lane.endpoint, length == 0 ? nullptr : from, length, true);
  }
  return carried_all(request, over);
}

/// In pieces that the target can answer: of bounce memory that it has granted, where it must stage.
bool UcxTransport::carry_get(Lane& lane, CarriedRequest& request) {
  const bool staged = is_staged(request.segment);
  if (staged && is_unknown(lane, request)) return true;
  const std::uint64_t most = staged ? BouncePool::kPieceBytes : kReadPiece;
  ++request.open_parts;
  bool over = request.bytes == 0;
  while (!over && room(lane) && lane.reads < kMaxReads && lane.is(Lane::State::kReady) &&
         (!staged || take_piece(lane, request))) {
    const auto length = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(most, request.bytes - request.posted_bytes));
    Operation& part = begin_part(OperationKind::kRead, lane, request);
    ++lane.reads;
    part.result = static_cast<std::byte*>(request.local) + request.posted_bytes;
    part.bytes = part.missing = length;
    part.header = header_of(staged ? MessageKind::kStageRead : MessageKind::kRead, request, length);
    part.header.ticket = part.ticket();
    request.posted_bytes += length;
    over = request.posted_bytes == request.bytes;
    send(part, lane.endpoint, nullptr, 0, true);
  }
  return carried_all(request, over);
}

/// What a call of carry_put() or carry_get() comes to. Not over: the rest is for the next call.
bool UcxTransport::carried_all(CarriedRequest& request, bool over) {
  if (over) {
    posted(request);
  } else {
    --request.open_parts;
  }
  return over;
}

bool UcxTransport::carry_amo(Lane& lane, CarriedRequest& request) {
  if (!room(lane)) return false;
  ++request.open_parts;
  const bool fetches = request.local != nullptr;
  Operation& part =
      begin_part(fetches ? OperationKind::kFetch : OperationKind::kMessage, lane, request);
  part.header =
      header_of(fetches ? MessageKind::kFetch : MessageKind::kUpdate, request, request.width);
  part.header.op = static_cast<std::uint8_t>(request.op);
  part.header.width = request.width;
  part.header.operand = request.operand;
  part.header.word_offset = request.compare;
  if (fetches) {
    part.result = static_cast<std::byte*>(request.local);
    part.bytes = request.width;
    part.header.ticket = part.ticket();
  }
  send(part, lane.endpoint, nullptr, 0, true);
  posted(request);
  return true;
}

bool UcxTransport::carry_drain(Lane& lane, CarriedRequest& request) {
  if (!room(lane)) return false;
  ++request.open_parts;
  begin_part(OperationKind::kDrain, lane, request).staged_to = lane.staged.used;
  ask_done(lane);
  posted(request);
  return true;
}

bool UcxTransport::post_note(int rank, ListenerNumber listener, std::span<const std::byte> note) {
  if (note.size() > kNoteBytes) return true;  // nobody would take it
  Status failed;
  Lane* lane = try_reach(rank, failed);
  if (lane == nullptr) return !failed.ok();  // nobody is left to tell
  {
    Turn turn(*this, Turn::Patience::kTry);
    if (!turn) return false;
    if (lane->is(Lane::State::kFailed)) return true;
    if (!room(*lane)) return false;
    Operation& op = operations_.take(OperationKind::kMessage, nullptr, false);
    op.header = {};
    op.header.kind = MessageKind::kNote;
    op.header.ticket = listener;
    op.header.bytes = static_cast<std::uint32_t>(note.size());
    std::ranges::copy(note, op.note);
    send(op, lane->endpoint, op.note, note.size(), false);
  }
  leave();
  return true;
}

void UcxTransport::tell_refused(ListenerNumber number, const Refusal& refusal) {
  if (const Listener* listener = listeners_.find(number)) listener->refused(refusal);
}

/// The target did not answer with what was asked for.
void UcxTransport::tell_refused(CarriedRequest& request, std::uint64_t size) {
  request.is_refused = true;
  Refusal refusal;
  refusal.rank = request.rank;
  refusal.kind = request.kind;
  refusal.segment = request.segment;
  refusal.offset = request.offset;
  refusal.bytes = request.kind == CarriedRequest::Kind::kAmo ? request.width : request.bytes;
  refusal.size = size;
  tell_refused(request.listener, refusal);
}

bool UcxTransport::take_note(const MessageHeader& header, const std::byte* data,
                             std::size_t length) {
  if (length > kNoteBytes || !listeners_.has_given(header.ticket)) return false;
  const Listener* listener = listeners_.find(static_cast<ListenerNumber>(header.ticket));
  if (listener != nullptr) listener->noted(header.source, {data, length});
  return true;
}

bool UcxTransport::take_refused(const MessageHeader& header) {
  if (header.ticket == 0 || !listeners_.has_given(header.ticket - 1)) return false;
  const auto kind = static_cast<MessageKind>(header.op);
  Refusal refusal;
  refusal.rank = header.source;
  switch (kind) {
    case MessageKind::kPut:
    case MessageKind::kPutSignal:
      refusal.kind = CarriedRequest::Kind::kPut;
      refusal.is_signal = kind == MessageKind::kPutSignal;
      break;
    case MessageKind::kUpdate:
      refusal.kind = CarriedRequest::Kind::kAmo;
      break;
    default:
      return false;
  }
  refusal.segment = header.segment;
  refusal.offset = header.offset;
  refusal.bytes = header.word_offset;
  refusal.size = header.operand;
  tell_refused(static_cast<ListenerNumber>(header.ticket - 1), refusal);
  return true;
}

}  // namespace gimlet::pgas::ucx
