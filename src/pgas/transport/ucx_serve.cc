// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <utility>

#include "device/cpu/hooks.h"
#include "pgas/transport/carry_out.h"
#include "pgas/transport/ucx_transport.h"

namespace gimlet::pgas::ucx {
namespace {

const char* name_of(MessageKind kind) {
  switch (kind) {
    case MessageKind::kPut:
      return "put";
    case MessageKind::kRead:
      return "get";
    case MessageKind::kUpdate:
    case MessageKind::kFetch:
      return "update";
    case MessageKind::kPutSignal:
      return "signal";
    default:
      return "request";
  }
}

bool is_amo(std::uint8_t op) {
  return op <= static_cast<std::uint8_t>(AmoOp::kXor);
}

}  // namespace

Status refused(int pe, MessageKind kind, std::uint64_t bytes, unsigned segment,
               std::uint64_t offset, std::uint64_t size) {
  const std::string request = fmt::format(
      "PE {} refused a {} of {} bytes at offset {} of its "
      "symmetric segment {}: ",
      pe, name_of(kind), bytes, offset, segment);
  if (size == 0) return fail(Code::kInvalidArgument, "{}it has no such segment", request);
  if (offset <= size && bytes <= size - offset) {
    return fail(Code::kInvalidArgument, "{}a word has 4 or 8 bytes and is aligned to its size",
                request);
  }
  return fail(Code::kInvalidArgument, "{}the segment has {} bytes", request, size);
}

ucs_status_t UcxTransport::on_message(void* self, const void* header, size_t header_length,
                                      void* data, size_t length, const ucp_am_recv_param_t* param) {
  auto& transport = *static_cast<UcxTransport*>(self);
  const auto* payload = static_cast<const std::byte*>(data);
  if (header_length == 0) {  // see send()
    header = std::exchange(payload, nullptr);
    header_length = std::exchange(length, 0);
  }
  MessageHeader message;
  const bool whole =
      header_length == sizeof message && (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  if (whole) std::memcpy(&message, header, sizeof message);
  const ucp_ep_h reply_to =
      (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 ? param->reply_ep : nullptr;
  if (!whole || message.source < 0 || message.source >= transport.owner_.size ||
      !transport.serve(message, payload, length, reply_to))
    transport.strangers_.fetch_add(1, std::memory_order_relaxed);
  return UCS_OK;
}

/// False: the message is none of ours.
bool UcxTransport::serve(const MessageHeader& header, const std::byte* data, std::size_t length,
                         ucp_ep_h reply_to) {
  switch (header.kind) {
    case MessageKind::kPut:
      if (length != header.bytes) return false;
      serve_put(header, data, reply_to);
      return true;
    case MessageKind::kPutSignal:
      if (length != header.bytes || !is_amo(header.op)) return false;
      serve_put(header, data, reply_to);
      return true;
    case MessageKind::kUpdate:
      if (!is_amo(header.op)) return false;
      serve_update(header, reply_to);
      return true;
    case MessageKind::kFetch:
      if (reply_to == nullptr || !is_amo(header.op)) return false;
      serve_update(header, reply_to);
      return true;
    case MessageKind::kRead:
      if (reply_to == nullptr) return false;
      serve_read(header, reply_to);
      return true;
    case MessageKind::kAskDone:
      if (reply_to == nullptr) return false;
      serve_ask_done(header, reply_to);
      return true;
    case MessageKind::kNote:
      if (length != header.bytes) return false;
      return take_note(header, data, length);
    case MessageKind::kRefused:
      return take_refused(header);
    case MessageKind::kValue:
      return take_value(header);
    case MessageKind::kData:
      return take_data(header, data, length);
    case MessageKind::kDone:
      return take_done(header);
    case MessageKind::kStageNews:
      return take_news(header);
    case MessageKind::kStageAsk:
    case MessageKind::kStageData:
    case MessageKind::kStagePart:
    case MessageKind::kStagePut:
    case MessageKind::kStageRead:
      return serve_staged(header, data, length, reply_to);
  }
  return false;
}

/// The word that a put is to raise, and its place. False: refused.
bool UcxTransport::find_places(const MessageHeader& header, ucp_ep_h reply_to, std::byte*& place,
                               std::byte*& word) {
  const bool raises = header.kind == MessageKind::kPutSignal || header.width != 0;
  word = nullptr;
  if (raises && !find_signal(memory_, header.word_segment, header.word_offset, word)) {
    MessageHeader signal = header;
    signal.kind = MessageKind::kPutSignal;
    signal.segment = header.word_segment;
    signal.offset = header.word_offset;
    signal.bytes = 8;
    refuse(signal, 8, reply_to);
    return false;
  }
  const std::uint64_t bytes = header.bytes + bytes_to_come(header);
  const bool overflows = bytes < header.bytes;
  place = overflows ? nullptr : memory_.locate(header.segment, header.offset, bytes);
  if (place != nullptr || bytes == 0) return true;
  MessageHeader put = header;
  put.kind = MessageKind::kPut;
  refuse(put, overflows ? ~std::uint64_t{0} : bytes, reply_to);
  return false;
}

void UcxTransport::serve_put(const MessageHeader& header, const std::byte* data,
                             ucp_ep_h reply_to) {
  std::byte* place = nullptr;
  std::byte* word = nullptr;
  if (!find_places(header, reply_to, place, word)) return;
  store_payload(place, data, header.bytes);
  if (header.kind != MessageKind::kPutSignal) return;
  raise_signal(memory_, header.word_segment, header.word_offset, word,
               static_cast<AmoOp>(header.op), header.operand);
}

void UcxTransport::serve_update(const MessageHeader& header, ucp_ep_h reply_to) {
  std::byte* word = memory_.locate_word(header.segment, header.offset, header.width);
  const bool is_fetch = header.kind == MessageKind::kFetch;
  std::uint64_t old = 0;
  if (word != nullptr) {
    old = update_word(word, header.width, static_cast<AmoOp>(header.op), header.operand,
                      header.word_offset);
    device::wake_device_threads();
  } else if (!update_staged(header, old)) {
    return is_fetch ? reply_refused(reply_to, header) : refuse(header, header.bytes, reply_to);
  }
  if (!is_fetch) return;
  MessageHeader answer = header;
  answer.kind = MessageKind::kValue;
  answer.refused = 0;
  answer.operand = old;
  reply(reply_to, answer, nullptr, 0);
}

void UcxTransport::serve_read(const MessageHeader& header, ucp_ep_h reply_to) {
  const std::byte* place = memory_.locate(header.segment, header.offset, header.bytes);
  if (place == nullptr) return reply_refused(reply_to, header);
  MessageHeader answer = header;
  answer.refused = 0;
  if (header.bytes <= sizeof answer.operand) {
    answer.kind = MessageKind::kValue;
    answer.operand = 0;
    load_payload(&answer.operand, place, header.bytes);
    return reply(reply_to, answer, nullptr, 0);
  }
  answer.kind = MessageKind::kData;
  for (std::uint32_t done = 0; done != header.bytes; done += answer.bytes) {
    answer.offset = done;
    answer.bytes =
        std::min(header.bytes - done, static_cast<std::uint32_t>(worker_.message_limit()));
    reply(reply_to, answer, place + done, answer.bytes);
  }
}

/// Messages of a source are handled in order, so everything before this one is done.
void UcxTransport::serve_ask_done(const MessageHeader& header, ucp_ep_h reply_to) {
  const auto found = refusals_.find(header.source);
  if (found == refusals_.end()) {
    MessageHeader answer = header;
    answer.kind = MessageKind::kDone;
    answer.refused = 0;
    return reply(reply_to, answer, nullptr, 0);
  }
  MessageHeader first = found->second;
  refusals_.erase(found);
  first.ticket = header.ticket;
  reply_refused(reply_to, first);
}

/// Told at once when the request says to whom, else kept until the source asks. `bytes`: of the
/// request, as far as it is known.
void UcxTransport::refuse(const MessageHeader& header, std::uint64_t bytes, ucp_ep_h reply_to) {
  if (header.ticket == 0 || reply_to == nullptr) {
    refusals_.try_emplace(header.source, header);
    return;
  }
  MessageHeader answer = header;
  answer.kind = MessageKind::kRefused;
  answer.op = static_cast<std::uint8_t>(header.kind);
  answer.operand = memory_.size_of(header.segment);
  answer.word_offset = bytes;
  reply(reply_to, answer, nullptr, 0);
}

void UcxTransport::reply_refused(ucp_ep_h to, const MessageHeader& request) {
  MessageHeader answer = request;
  const bool answered = request.kind == MessageKind::kFetch || request.kind == MessageKind::kRead;
  answer.kind = answered ? MessageKind::kValue : MessageKind::kDone;
  answer.op = static_cast<std::uint8_t>(request.kind);
  answer.refused = 1;
  answer.operand = memory_.size_of(request.segment);
  reply(to, answer, nullptr, 0);
}

void UcxTransport::reply(ucp_ep_h to, const MessageHeader& header, const std::byte* payload,
                         std::size_t bytes) {
  Operation& op = operations_.take(OperationKind::kMessage, nullptr, false);
  op.header = header;
  // UCX may keep the payload until the peer takes it; the segment may go sooner.
  if (bytes != 0 && memory_.is_removable(header.segment)) {
    op.copy.assign(payload, payload + bytes);
    payload = op.copy.data();
  }
  send(op, to, payload, bytes, false);
}

/// The open request that a message answers, if it comes from the PE that was asked.
Operation* UcxTransport::asked(const MessageHeader& answer) {
  Operation* op = operations_.find(answer.ticket);
  if (op == nullptr || op->lane == nullptr || op->lane->pe != answer.source) return nullptr;
  if (op->kind != OperationKind::kFetch && op->kind != OperationKind::kRead) return nullptr;
  op->lane->heard = true;
  return op;
}

bool UcxTransport::take_value(const MessageHeader& header) {
  Operation* op = asked(header);
  if (op == nullptr || (header.refused == 0 && op->bytes > sizeof header.operand)) return false;
  if (header.refused != 0 && op->carried != nullptr) {
    tell_refused(*op->carried, header.operand);
  } else if (header.refused != 0) {
    op->error = refused(header.source, static_cast<MessageKind>(header.op), header.bytes,
                        header.segment, header.offset, header.operand);
  } else if (op->result != nullptr) {
    std::memcpy(op->result, &header.operand, op->bytes);
  }
  finish(*op);
  return true;
}

bool UcxTransport::take_data(const MessageHeader& header, const std::byte* data,
                             std::size_t length) {
  Operation* op = asked(header);
  if (op == nullptr || op->kind != OperationKind::kRead) return false;
  if (length == 0 || length > op->missing) return false;
  if (header.offset > op->bytes || length > op->bytes - header.offset) return false;
  if (op->result != nullptr) std::memcpy(op->result + header.offset, data, length);
  op->missing -= static_cast<std::uint32_t>(length);
  if (op->missing == 0) finish(*op);
  return true;
}

bool UcxTransport::take_done(const MessageHeader& header) {
  Lane* lane = lanes_[static_cast<std::size_t>(header.source)].load(std::memory_order_relaxed);
  if (lane == nullptr || header.ticket > lane->asked_to) return false;
  lane->heard = true;
  lane->acknowledged_to = std::max(lane->acknowledged_to, header.ticket);
  if (header.refused != 0) {
    defer(refused(header.source, static_cast<MessageKind>(header.op), header.bytes, header.segment,
                  header.offset, header.operand));
  }
  for (Operation* next = lane->open.after; lane->put_signals != 0 && next != &lane->open;) {
    Operation& op = *std::exchange(next, next->after);
    const bool acknowledged =
        op.signal_sequence != 0 && op.signal_sequence <= lane->acknowledged_to;
    if (op.kind == OperationKind::kPutSignal && acknowledged) finish(op);
  }
  finish_drains(*lane);
  return true;
}

}  // namespace gimlet::pgas::ucx
