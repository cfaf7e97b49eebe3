// SPDX-License-Identifier: BSD-3-Clause
// Requests of proxies. All of them are messages, so the order of a lane is that of the endpoint: a
// strong signal needs nothing that a weak one does not.
#include <algorithm>
#include <cstring>
#include <utility>

#include "device/clock.h"
#include "device/cpu/hooks.h"
#include "pgas/transport/ucx_transport.h"

namespace gimlet::pgas::ucx {
namespace {

constexpr std::uint32_t kReadPiece = 64 << 10;
constexpr std::uint32_t kMaxReads = 64;
constexpr std::uint64_t kTryAgainNs = 1'000'000;
constexpr std::size_t kMostListeners = std::size_t{1} << 16;

AmoOp update_of(SignalOp op) {
  return op == SignalOp::kSet ? AmoOp::kSet : AmoOp::kAdd;
}

MessageHeader header_of(MessageKind kind, const CarriedRequest& request) {
  MessageHeader header{};
  header.kind = kind;
  header.segment = request.segment;
  header.offset = request.offset;
  header.ticket = told_by(request.listener);
  return header;
}

/// The signal of a put, alone.
MessageHeader signal_header(const CarriedRequest& request) {
  MessageHeader header{};
  header.kind = MessageKind::kUpdate;
  header.op = static_cast<std::uint8_t>(update_of(request.signal.op));
  header.width = 8;
  header.segment = request.signal.segment;
  header.offset = request.signal.offset;
  header.bytes = 8;
  header.operand = request.signal.value;
  header.ticket = told_by(request.listener);
  return header;
}

}  // namespace

Status UcxTransport::add_segment(std::byte* base, std::size_t size, SegmentNumber& number) {
  Turn turn(*this, Turn::Patience::kWait);
  if (memory_.add({base, size}, number)) return {};
  return fail(Code::kNoMemory, "at most 65536 pieces of memory can be offered at a time");
}

void UcxTransport::remove_segment(SegmentNumber number) {
  Turn turn(*this, Turn::Patience::kWait);
  memory_.remove(number);
}

Status UcxTransport::add_listener(Listener listener, ListenerNumber& number) {
  Turn turn(*this, Turn::Patience::kWait);
  const auto free = std::ranges::find_if(listeners_, [](const auto& l) { return l == nullptr; });
  number = static_cast<ListenerNumber>(free - listeners_.begin());
  if (number == kMostListeners)
    return fail(Code::kNoMemory, "at most {} listeners can be there at a time", kMostListeners);
  if (free == listeners_.end()) listeners_.emplace_back();
  listeners_[number] = std::make_unique<Listener>(std::move(listener));
  return {};
}

void UcxTransport::remove_listener(ListenerNumber number) {
  Turn turn(*this, Turn::Patience::kWait);
  listeners_[number] = nullptr;
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
  Status failed;
  Lane* lane = nullptr;
  if (request.rank != owner_.rank) {
    lane = try_reach(request.rank, failed);
    if (lane == nullptr && failed.ok()) return false;
  }
  bool done = false;
  {
    Turn turn(*this, Turn::Patience::kTry);
    if (!turn) return false;
    if (lane == nullptr || lane->is(Lane::State::kFailed)) {
      if (lane != nullptr) failed = fail(Code::kRemote, "{}", lane->why_failed);
      Refusal refusal;
      if (failed.ok() && !carry_out(request, refusal)) tell_refused(request.listener, refusal);
      ++request.open_parts;
      request.is_posted = true;
      end_part(request, std::move(failed));
      return true;
    }
    done = carry(*lane, request);
  }
  leave();
  return done;
}

bool UcxTransport::carry(Lane& lane, CarriedRequest& request) {
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
  Operation& op = begin(kind, lane, false);
  op.carried = &request;
  ++request.open_parts;
  return op;
}

/// The request may be gone after it.
void UcxTransport::end_part(CarriedRequest& request, Status status) {
  if (request.failure.ok()) request.failure = std::move(status);
  if (--request.open_parts != 0 || !request.is_posted) return;
  request.completed(request, std::exchange(request.failure, {}));
}

/// All of a request is posted. Parts may be over already, so one stands for "being posted".
void UcxTransport::posted(CarriedRequest& request) {
  request.is_posted = true;
  end_part(request, {});
}

bool UcxTransport::carry_put(Lane& lane, CarriedRequest& request) {
  const auto* from = static_cast<const std::byte*>(request.local);
  ++request.open_parts;
  while (room(lane) && lane.is(Lane::State::kReady)) {
    const std::uint64_t left = request.bytes - request.posted_bytes;
    const auto length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(left, worker_.message_limit()));
    const bool last = length == left;
    Operation& part = begin_part(OperationKind::kMessage, lane, request);
    if (length == 0) {
      part.header = signal_header(request);
    } else {
      part.header = header_of(MessageKind::kPut, request);
      part.header.offset += request.posted_bytes;
      part.header.bytes = length;
    }
    if (last && length != 0 && request.signal.present) {
      part.header.kind = MessageKind::kPutSignal;
      part.header.op = static_cast<std::uint8_t>(update_of(request.signal.op));
      part.header.width = 8;
      part.header.word_segment = request.signal.segment;
      part.header.word_offset = request.signal.offset;
      part.header.operand = request.signal.value;
    }
    const std::byte* payload = length == 0 ? nullptr : from + request.posted_bytes;
    request.posted_bytes += length;
    send(part, lane.endpoint, payload, length, true);
    if (!last) continue;
    posted(request);
    return true;
  }
  --request.open_parts;
  return false;
}

bool UcxTransport::carry_get(Lane& lane, CarriedRequest& request) {
  ++request.open_parts;
  while (room(lane) && lane.reads < kMaxReads && lane.is(Lane::State::kReady)) {
    const auto length = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(kReadPiece, request.bytes - request.posted_bytes));
    Operation& part = begin_part(OperationKind::kRead, lane, request);
    ++lane.reads;
    part.result = static_cast<std::byte*>(request.local) + request.posted_bytes;
    part.bytes = part.missing = length;
    part.header = header_of(MessageKind::kRead, request);
    part.header.offset += request.posted_bytes;
    part.header.bytes = length;
    part.header.ticket = part.ticket();
    request.posted_bytes += length;
    send(part, lane.endpoint, nullptr, 0, true);
    if (request.posted_bytes != request.bytes) continue;
    posted(request);
    return true;
  }
  --request.open_parts;
  return false;
}

bool UcxTransport::carry_amo(Lane& lane, CarriedRequest& request) {
  if (!room(lane)) return false;
  ++request.open_parts;
  const bool fetches = request.local != nullptr;
  Operation& part =
      begin_part(fetches ? OperationKind::kFetch : OperationKind::kMessage, lane, request);
  part.header = header_of(fetches ? MessageKind::kFetch : MessageKind::kUpdate, request);
  part.header.op = static_cast<std::uint8_t>(request.op);
  part.header.width = request.width;
  part.header.bytes = request.width;
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
  begin_part(OperationKind::kDrain, lane, request);
  ask_done(lane);
  posted(request);
  return true;
}

/// A request to this PE itself. False: nothing was done, for the reason given.
bool UcxTransport::carry_out(CarriedRequest& request, Refusal& refusal) {
  refusal.rank = request.rank;
  refusal.kind = request.kind;
  refusal.segment = request.segment;
  refusal.offset = request.offset;
  refusal.bytes = request.kind == CarriedRequest::Kind::kAmo ? request.width : request.bytes;
  refusal.size = memory_.size_of(request.segment);
  if (request.kind == CarriedRequest::Kind::kDrain) return true;
  if (request.kind == CarriedRequest::Kind::kAmo) {
    std::byte* word = memory_.locate_word(request.segment, request.offset, request.width);
    if (word == nullptr) return false;
    const std::uint64_t old =
        update_word(word, request.width, request.op, request.operand, request.compare);
    if (request.local != nullptr) std::memcpy(request.local, &old, request.width);
    return true;
  }
  const CarriedSignal& signal = request.signal;
  std::byte* const word =
      signal.present ? memory_.locate_word(signal.segment, signal.offset, 8) : nullptr;
  if (signal.present && word == nullptr) {
    refusal.is_signal = true;
    refusal.segment = signal.segment;
    refusal.offset = signal.offset;
    refusal.bytes = 8;
    refusal.size = memory_.size_of(signal.segment);
    return false;
  }
  if (request.bytes != 0) {
    std::byte* place = memory_.locate(request.segment, request.offset, request.bytes);
    if (place == nullptr) return false;
    if (request.kind == CarriedRequest::Kind::kGet) {
      load_payload(request.local, place, request.bytes);
    } else {
      store_payload(place, request.local, request.bytes);
    }
  }
  if (word == nullptr) return true;
  update_word(word, 8, update_of(signal.op), signal.value, 0);
  device::wake_device_threads();
  return true;
}

bool UcxTransport::post_note(int rank, ListenerNumber listener, std::span<const std::byte> note) {
  Status failed;
  Lane* lane = try_reach(rank, failed);
  if (lane == nullptr) return !failed.ok();  // nobody is left to tell
  {
    Turn turn(*this, Turn::Patience::kTry);
    if (!turn || !room(*lane)) return lane->is(Lane::State::kFailed);
    Operation& op = begin(OperationKind::kMessage, *lane, false);
    op.header = {};
    op.header.kind = MessageKind::kNote;
    op.header.ticket = listener;
    op.header.bytes = static_cast<std::uint32_t>(note.size());
    std::memcpy(op.note, note.data(), std::min(note.size(), sizeof op.note));
    send(op, lane->endpoint, op.note, note.size(), false);
  }
  leave();
  return true;
}

void UcxTransport::tell_refused(ListenerNumber number, const Refusal& refusal) {
  if (number < listeners_.size() && listeners_[number] != nullptr)
    listeners_[number]->refused(refusal);
}

bool UcxTransport::take_note(const MessageHeader& header, const std::byte* data,
                             std::size_t length) {
  if (length > kNoteBytes || header.ticket >= listeners_.size()) return false;
  const std::unique_ptr<Listener>& listener = listeners_[header.ticket];
  if (listener == nullptr) return false;
  listener->noted(header.source, {data, length});
  return true;
}

bool UcxTransport::take_refused(const MessageHeader& header) {
  const auto kind = static_cast<MessageKind>(header.op);
  if (header.ticket == 0 || header.ticket > listeners_.size()) return false;
  Refusal refusal;
  refusal.rank = header.source;
  refusal.kind = CarriedRequest::Kind::kPut;
  refusal.is_signal = kind != MessageKind::kPut;
  refusal.segment = header.segment;
  refusal.offset = header.offset;
  refusal.bytes = header.bytes;
  refusal.size = header.operand;
  tell_refused(static_cast<ListenerNumber>(header.ticket - 1), refusal);
  return true;
}

}  // namespace gimlet::pgas::ucx
