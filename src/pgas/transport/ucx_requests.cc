// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <utility>

#include "pgas/transport/ucx_transport.h"

namespace gimlet::pgas::ucx {
namespace {

MessageHeader header_for(MessageKind kind, const RemoteAddress& place, std::uint64_t bytes) {
  MessageHeader header{};
  header.kind = kind;
  header.segment = place.segment;
  header.offset = place.offset;
  header.bytes = static_cast<std::uint32_t>(bytes);
  return header;
}

MessageHeader update_header(MessageKind kind, const RemoteAddress& word, unsigned width, AmoOp op,
                            std::uint64_t operand, std::uint64_t compare) {
  MessageHeader header = header_for(kind, word, width);
  header.op = static_cast<std::uint8_t>(op);
  header.width = static_cast<std::uint8_t>(width);
  header.operand = operand;
  header.word_offset = compare;
  return header;
}

ucp_request_param_t request_param(Operation& op, ucp_send_nbx_callback_t completed) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = completed;
  param.user_data = &op;
  return param;
}

/// What the peer published about the place, for transfers that are not checked as a whole there.
Status find_remote(const Lane& lane, MessageKind kind, const RemoteAddress& place,
                   std::uint64_t bytes, const Lane::Remote*& remote) {
  const bool known = place.segment < lane.remote.size();
  const std::uint64_t size = known ? lane.remote[place.segment].size : 0;
  if (!known || place.offset > size || bytes > size - place.offset)
    return refused(lane.pe, kind, bytes, place.segment, place.offset, size);
  remote = &lane.remote[place.segment];
  return {};
}

}  // namespace

Operation& UcxTransport::begin(OperationKind kind, Lane& lane, bool awaited,
                               CarriedRequest* carried) {
  Operation& op = operations_.take(kind, &lane, awaited);
  op.carried = carried;
  op.sequence = ++sequence_;
  lane.link(op);
  // quiet is not about what proxies posted.
  if (carried == nullptr && !lane.dirty) {
    lane.dirty = true;
    dirty_.push_back(&lane);
  }
  return op;
}

void UcxTransport::finish(Operation& op) {
  if (op.finished) return;
  op.finished = true;
  op.source_free = true;
  if (op.lane != nullptr) op.lane->unlink(op);
  if (op.kind == OperationKind::kRead) --op.lane->reads;
  if (CarriedRequest* carried = std::exchange(op.carried, nullptr); carried != nullptr)
    end_part(*carried, std::exchange(op.error, {}));
  if (Operation* whole = std::exchange(op.whole, nullptr); whole != nullptr) {
    if (whole->error.ok()) whole->error = std::exchange(op.error, {});
    op.error = {};
    if (--whole->parts == 0 && whole->posted) finish(*whole);
  }
  recycle_if_unused(op);
}

void UcxTransport::recycle_if_unused(Operation& op) {
  if (!op.finished || op.awaited || op.requests != 0 || op.parts != 0) return;
  if (!op.error.ok()) defer(std::move(op.error));
  operations_.give_back(op);
}

/// Follows a request that was just given to UCX; it may be over already.
void UcxTransport::adopt(Operation& op, ucs_status_ptr_t request) {
  if (!UCS_PTR_IS_PTR(request)) return completed(op, UCS_PTR_RAW_STATUS(request));
  ++op.requests;
  ++requests_;
  if (op.lane != nullptr) ++op.lane->requests;
  op.unsent = op.kind != OperationKind::kGet && op.kind != OperationKind::kFlush &&
              op.stage != Operation::Stage::kFlush;
  if (op.unsent) unsent_.fetch_add(1, std::memory_order_relaxed);
}

void UcxTransport::on_completed(void* request, ucs_status_t status, void* operation) {
  auto& op = *static_cast<Operation*>(operation);
  UcxTransport& self = *op.transport;
  ucp_request_free(request);
  --op.requests;
  --self.requests_;
  if (op.lane != nullptr) --op.lane->requests;
  if (std::exchange(op.unsent, false)) self.unsent_.fetch_sub(1, std::memory_order_relaxed);
  self.completed(op, status);
}

void UcxTransport::completed(Operation& op, ucs_status_t status) {
  if (op.finished) return recycle_if_unused(op);
  if (status != UCS_OK && op.lane != nullptr) {
    Lane& lane = *op.lane;
    ++op.requests;  // fail_lane may finish it, it must not be recycled under our hands
    fail_lane(lane, fmt::format("PE {} can't be reached any more: {}", lane.pe,
                                ucs_status_string(status)));
    --op.requests;
    if (op.finished) return recycle_if_unused(op);
    // Questions and flushes of our own have no caller; the failed lane ends the waits for them.
    if (op.linked) op.error = fail(Code::kRemote, "{}", lane.why_failed);
    return finish(op);
  }
  switch (op.kind) {
    case OperationKind::kFetch:  // the request has left; the answer finishes it
    case OperationKind::kRead:
    case OperationKind::kTransfer:
    case OperationKind::kDrain:
      return;
    case OperationKind::kPutSignal:
      return advance(op);
    case OperationKind::kFlush:
      op.lane->flushed_to = std::max(op.lane->flushed_to, op.flush_sequence);
      op.lane->heard = true;
      return finish(op);
    case OperationKind::kGet:
      op.lane->heard = true;
      return finish(op);
    case OperationKind::kMessage:
    case OperationKind::kPut:
      return finish(op);
    case OperationKind::kStageData: {
      BouncePiece& piece = *op.piece;
      finish(op);
      return staging_->sent(piece);
    }
  }
}

void UcxTransport::send(Operation& op, ucp_ep_h endpoint, const void* payload, std::size_t bytes,
                        bool reply) {
  ucp_request_param_t param = request_param(op, &UcxTransport::on_completed);
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  if (reply) param.flags |= UCP_AM_SEND_FLAG_REPLY;
  op.header.source = owner_.rank;
  // The protocols that UCX 1.13 takes with UCX_PROTO_ENABLE=y forget the reply address when they
  // judge whether a message is short, and overrun their stack. A vector is never sent as a short
  // message. Without a payload the header takes its place, and is short enough for all.
  if (bytes == 0) {
    return adopt(op, ucp_am_send_nbx(endpoint, kMessageId, nullptr, 0, &op.header, sizeof op.header,
                                     &param));
  }
  std::size_t count = bytes;
  if (reply) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = UCP_DATATYPE_IOV;
    op.payload = {const_cast<void*>(payload), bytes};
    payload = &op.payload;
    count = 1;
  }
  adopt(op, ucp_am_send_nbx(endpoint, kMessageId, &op.header, sizeof op.header, payload, count,
                            &param));
}

void UcxTransport::flush(Operation& op) {
  confirmations_.fetch_add(1, std::memory_order_relaxed);
  Lane& lane = *op.lane;
  op.flush_sequence = sequence_;
  lane.flushing_to = std::max(lane.flushing_to, sequence_);
  const ucp_request_param_t param = request_param(op, &UcxTransport::on_completed);
  adopt(op, ucp_ep_flush_nbx(lane.endpoint, &param));
}

void UcxTransport::ask_done(Lane& lane) {
  confirmations_.fetch_add(1, std::memory_order_relaxed);
  lane.asked_to = sequence_;
  Operation& op = operations_.take(OperationKind::kMessage, &lane, false);
  op.header = {};
  op.header.kind = MessageKind::kAskDone;
  op.header.ticket = sequence_;
  send(op, lane.endpoint, nullptr, 0, true);
}

/// One step of a put_signal over UCP's put: the put is done, or the flush, or the signal has left.
void UcxTransport::advance(Operation& op) {
  Lane& lane = *op.lane;
  switch (op.stage) {
    case Operation::Stage::kPut:
      op.source_free = true;
      op.stage = Operation::Stage::kFlush;
      return flush(op);
    case Operation::Stage::kFlush:
      lane.flushed_to = std::max(lane.flushed_to, op.flush_sequence);
      lane.heard = true;
      op.stage = Operation::Stage::kSignal;
      op.signal_sequence = lane.last_message = ++sequence_;
      return send(op, lane.endpoint, nullptr, 0, false);
    case Operation::Stage::kSignal:
      op.stage = Operation::Stage::kAcknowledge;
      return;
    case Operation::Stage::kAcknowledge:
      return;
  }
}

/// The bytes as messages that are handled in order; the last one is `last`.
Status UcxTransport::send_whole(Lane& lane, const MessageHeader& last, const void* source,
                                std::size_t bytes, bool wait) {
  const std::size_t limit = worker_.message_limit();
  const auto* from = static_cast<const std::byte*>(source);
  std::size_t sent = 0;
  Operation* op = nullptr;
  const auto post_part = [&](Operation& part) {
    const std::size_t length = std::min(limit, bytes - sent);
    part.header = last;
    if (sent + length != bytes) {
      part.header.kind = MessageKind::kPut;
      part.header.operand = bytes - sent - length;
    }
    part.header.offset = last.offset + sent;
    part.header.bytes = static_cast<std::uint32_t>(length);
    lane.last_message = part.sequence;
    const std::byte* payload = length != 0 ? from + sent : nullptr;
    sent += length;
    send(part, lane.endpoint, payload, length, false);
  };
  const auto post = [&] {
    if (bytes <= limit) {
      op = &begin(OperationKind::kMessage, lane, true);
      post_part(*op);
      return true;
    }
    if (op == nullptr) {
      op = &begin(OperationKind::kTransfer, lane, true);
      op->posted = false;
    }
    while (sent != bytes && room(lane) && lane.is(Lane::State::kReady)) {
      Operation& part = begin(OperationKind::kMessage, lane, false);
      part.whole = op;
      ++op->parts;
      post_part(part);
    }
    op->posted = sent == bytes;
    if (op->posted && op->parts == 0) finish(*op);
    return op->posted;
  };
  return issue(lane, Class::kMessage, wait, op, post);
}

Status UcxTransport::read_whole(Lane& lane, void* dest, const RemoteAddress& source,
                                std::size_t bytes, bool wait) {
  auto* to = static_cast<std::byte*>(dest);
  std::size_t asked_for = 0;
  Operation* op = nullptr;
  const auto post_part = [&](Operation& part) {
    const std::size_t length = std::min<std::size_t>(kReadPiece, bytes - asked_for);
    ++lane.reads;
    part.result = to + asked_for;
    part.bytes = part.missing = static_cast<std::uint32_t>(length);
    part.header = header_for(MessageKind::kRead,
                             {source.pe, source.segment, source.offset + asked_for}, length);
    part.header.ticket = part.ticket();
    asked_for += length;
    send(part, lane.endpoint, nullptr, 0, true);
  };
  const auto post = [&] {
    if (lane.reads >= kMaxReads) return false;
    if (bytes <= kReadPiece) {
      op = &begin(OperationKind::kRead, lane, true);
      post_part(*op);
      return true;
    }
    if (op == nullptr) {
      op = &begin(OperationKind::kTransfer, lane, true);
      op->posted = false;
    }
    while (asked_for != bytes && room(lane) && lane.reads < kMaxReads &&
           lane.is(Lane::State::kReady)) {
      Operation& part = begin(OperationKind::kRead, lane, false);
      part.whole = op;
      ++op->parts;
      post_part(part);
    }
    op->posted = asked_for == bytes;
    if (op->posted && op->parts == 0) finish(*op);
    return op->posted;
  };
  return issue(lane, Class::kGet, wait, op, post);
}

/// UCP's own put; with `signal` as one request that raises it afterwards.
Status UcxTransport::put_native(Lane& lane, const Lane::Remote& remote, const RemoteAddress& dest,
                                const void* source, std::size_t bytes, const MessageHeader* signal,
                                bool wait) {
  Operation* op = nullptr;
  const auto post = [&] {
    op = &begin(signal != nullptr ? OperationKind::kPutSignal : OperationKind::kPut, lane, true);
    lane.last_put = op->sequence;
    if (signal != nullptr) {
      op->header = *signal;
      op->source_free = false;
    }
    const ucp_request_param_t param = request_param(*op, &UcxTransport::on_completed);
    adopt(*op,
          ucp_put_nbx(lane.endpoint, source, bytes, remote.base + dest.offset, remote.key, &param));
    return true;
  };
  return issue(lane, Class::kPut, wait, op, post);
}

Status UcxTransport::start_put(const RemoteAddress& dest, const void* source, std::size_t bytes,
                               bool wait) {
  if (bytes == 0) return {};
  if (dest.pe == owner_.rank) {
    std::byte* place = memory_.locate(dest.segment, dest.offset, bytes);
    if (place == nullptr) {
      return refused(dest.pe, MessageKind::kPut, bytes, dest.segment, dest.offset,
                     memory_.size_of(dest.segment));
    }
    store_payload(place, source, bytes);
    return {};
  }
  Lane* lane = nullptr;
  GIMLET_TRY(reach(dest.pe, lane));
  const MessageHeader last = header_for(MessageKind::kPut, dest, bytes);
  if (bytes <= worker_.message_limit()) return send_whole(*lane, last, source, bytes, wait);
  const Lane::Remote* remote = nullptr;
  GIMLET_TRY(find_remote(*lane, MessageKind::kPut, dest, bytes, remote));
  if (remote->native) return put_native(*lane, *remote, dest, source, bytes, nullptr, wait);
  return send_whole(*lane, last, source, bytes, wait);
}

Status UcxTransport::start_get(void* dest, const RemoteAddress& source, std::size_t bytes,
                               bool wait) {
  if (bytes == 0) return {};
  if (source.pe == owner_.rank) {
    const std::byte* place = memory_.locate(source.segment, source.offset, bytes);
    if (place == nullptr) {
      return refused(source.pe, MessageKind::kRead, bytes, source.segment, source.offset,
                     memory_.size_of(source.segment));
    }
    load_payload(dest, place, bytes);
    return {};
  }
  Lane* lane = nullptr;
  GIMLET_TRY(reach(source.pe, lane));
  const Lane::Remote* remote = nullptr;
  GIMLET_TRY(find_remote(*lane, MessageKind::kRead, source, bytes, remote));
  if (!remote->native) return read_whole(*lane, dest, source, bytes, wait);

  Operation* op = nullptr;
  const auto post = [&] {
    op = &begin(OperationKind::kGet, *lane, true);
    const ucp_request_param_t param = request_param(*op, &UcxTransport::on_completed);
    adopt(*op, ucp_get_nbx(lane->endpoint, dest, bytes, remote->base + source.offset, remote->key,
                           &param));
    return true;
  };
  return issue(*lane, Class::kGet, wait, op, post);
}

Status UcxTransport::start_amo(AmoOp op, unsigned width, const RemoteAddress& word,
                               std::uint64_t operand, std::uint64_t compare, void* fetched,
                               bool wait) {
  if (word.pe == owner_.rank) {
    std::byte* place = memory_.locate_word(word.segment, word.offset, width);
    if (place == nullptr) {
      return refused(word.pe, MessageKind::kUpdate, width, word.segment, word.offset,
                     memory_.size_of(word.segment));
    }
    const std::uint64_t old = update_word(place, width, op, operand, compare);
    if (fetched != nullptr) std::memcpy(fetched, &old, width);
    return {};
  }
  Lane* lane = nullptr;
  GIMLET_TRY(reach(word.pe, lane));
  if (fetched == nullptr) {
    Operation* update = nullptr;
    const auto post = [&] {
      update = &begin(OperationKind::kMessage, *lane, true);
      update->header = update_header(MessageKind::kUpdate, word, width, op, operand, compare);
      lane->last_message = update->sequence;
      send(*update, lane->endpoint, nullptr, 0, false);
      return true;
    };
    return issue(*lane, Class::kMessage, wait, update, post);
  }
  Operation* fetch = nullptr;
  const auto post = [&] {
    fetch = &begin(OperationKind::kFetch, *lane, true);
    fetch->result = static_cast<std::byte*>(fetched);
    fetch->bytes = width;
    fetch->header = update_header(MessageKind::kFetch, word, width, op, operand, compare);
    fetch->header.ticket = fetch->ticket();
    // Its answer is its acknowledgement, so it is no message to ask about.
    send(*fetch, lane->endpoint, nullptr, 0, true);
    return true;
  };
  return issue(*lane, Class::kMessage, wait, fetch, post);
}

Status UcxTransport::start_put_signal(const RemoteAddress& dest, const void* source,
                                      std::size_t bytes, const RemoteAddress& signal,
                                      std::uint64_t value, SignalOp op, bool wait) {
  if (bytes == 0) return start_amo(update_of(op), 8, signal, value, 0, nullptr, wait);
  if (dest.pe == owner_.rank) {
    GIMLET_TRY(start_put(dest, source, bytes, wait));
    return start_amo(update_of(op), 8, signal, value, 0, nullptr, wait);
  }
  Lane* lane = nullptr;
  GIMLET_TRY(reach(dest.pe, lane));
  MessageHeader last = header_for(MessageKind::kPutSignal, dest, bytes);
  last.op = static_cast<std::uint8_t>(update_of(op));
  last.width = 8;
  last.word_segment = signal.segment;
  last.word_offset = signal.offset;
  last.operand = value;
  if (bytes <= worker_.message_limit()) return send_whole(*lane, last, source, bytes, wait);
  const Lane::Remote* remote = nullptr;
  GIMLET_TRY(find_remote(*lane, MessageKind::kPut, dest, bytes, remote));
  if (!remote->native) return send_whole(*lane, last, source, bytes, wait);
  const MessageHeader raise =
      update_header(MessageKind::kUpdate, signal, 8, update_of(op), value, 0);
  return put_native(*lane, *remote, dest, source, bytes, &raise, wait);
}

Status UcxTransport::put(const RemoteAddress& dest, const void* source, std::size_t bytes) {
  return start_put(dest, source, bytes, true);
}
Status UcxTransport::put_nbi(const RemoteAddress& dest, const void* source, std::size_t bytes) {
  return start_put(dest, source, bytes, false);
}
Status UcxTransport::get(void* dest, const RemoteAddress& source, std::size_t bytes) {
  return start_get(dest, source, bytes, true);
}
Status UcxTransport::get_nbi(void* dest, const RemoteAddress& source, std::size_t bytes) {
  return start_get(dest, source, bytes, false);
}
Status UcxTransport::amo(AmoOp op, unsigned width, const RemoteAddress& word, std::uint64_t operand,
                         std::uint64_t compare, void* fetched) {
  return start_amo(op, width, word, operand, compare, fetched, true);
}
Status UcxTransport::amo_nbi(AmoOp op, unsigned width, const RemoteAddress& word,
                             std::uint64_t operand, std::uint64_t compare, void* fetched) {
  return start_amo(op, width, word, operand, compare, fetched, false);
}
Status UcxTransport::put_signal(const RemoteAddress& dest, const void* source, std::size_t bytes,
                                const RemoteAddress& signal, std::uint64_t value, SignalOp op) {
  return start_put_signal(dest, source, bytes, signal, value, op, true);
}
Status UcxTransport::put_signal_nbi(const RemoteAddress& dest, const void* source,
                                    std::size_t bytes, const RemoteAddress& signal,
                                    std::uint64_t value, SignalOp op) {
  return start_put_signal(dest, source, bytes, signal, value, op, false);
}

}  // namespace gimlet::pgas::ucx
