// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/ucx_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/clock.h"
#include "device/log.h"

namespace gimlet::pgas::ucx {
namespace {

constexpr unsigned kLookAroundEvery = 64;
constexpr unsigned kBusyLooks = 64;

MessageHeader header_for(MessageKind kind, const RemoteAddress& place, std::size_t bytes) {
  MessageHeader header{};
  header.kind = kind;
  header.segment = place.segment;
  header.offset = place.offset;
  header.bytes = static_cast<std::uint32_t>(bytes);
  return header;
}

const char* name_of(MessageKind kind) {
  switch (kind) {
    case MessageKind::kPut:
      return "put";
    case MessageKind::kGet:
      return "get";
    case MessageKind::kUpdate:
    case MessageKind::kFetch:
      return "atomic update";
    case MessageKind::kPutSignal:
      return "signal of put_signal";
    default:
      return "request";
  }
}

Status refused(int pe, MessageKind kind, std::uint64_t bytes, unsigned segment,
               std::uint64_t offset, std::uint64_t size) {
  if (size == 0)
    return fail(Code::kInvalidArgument,
                "PE {} refused a {} of {} bytes: it has no symmetric segment {}", pe, name_of(kind),
                bytes, segment);
  if (offset <= size && bytes <= size - offset)
    return fail(
        Code::kInvalidArgument,
        "PE {} refused a {} of {} bytes at offset {} of its symmetric segment {}: a word of "
        "4 or 8 bytes must be aligned to its size",
        pe, name_of(kind), bytes, offset, segment);
  return fail(Code::kInvalidArgument,
              "PE {} refused a {} of {} bytes at offset {} of its symmetric segment {}: the "
              "segment has {} bytes",
              pe, name_of(kind), bytes, offset, segment, size);
}

}  // namespace

/// The token, held for a scope. Test it: another thread may hold it.
class UcxTransport::Turn {
 public:
  enum class Patience : unsigned char { kTry, kWait };
  // Acquire takes the release store of ~Turn: everything the last holder did is visible.
  explicit Turn(UcxTransport& transport, Patience patience = Patience::kTry)
      : transport_(transport) {
    device::Backoff backoff;
    for (;;) {
      held_ = !transport.token_.load(std::memory_order_relaxed) &&
              !transport.token_.exchange(true, std::memory_order_acquire);
      if (held_ || patience == Patience::kTry) return;
      backoff.step();
    }
  }
  ~Turn() {
    if (held_) transport_.token_.store(false, std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return held_; }

 private:
  UcxTransport& transport_;
  bool held_ = false;
};

UcxTransport::UcxTransport(const TransportOwner& owner)
    : owner_(owner),
      memory_(owner.segments),
      lanes_(static_cast<std::atomic<Lane*>*>(
                 std::calloc(static_cast<std::size_t>(owner.size), sizeof(std::atomic<Lane*>))),
             &std::free) {
  owner_.segments = memory_.segments();
}

Status UcxTransport::open(std::vector<std::byte>& blob) {
  if (lanes_ == nullptr) return fail(Code::kNoMemory, "no memory for {} lanes", owner_.size);
  GIMLET_TRY(worker_.open(owner_.segments));
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.cb = &UcxTransport::on_message;
  handler.arg = this;
  if (const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_.handle(), &handler);
      status != UCS_OK)
    return fail(Code::kSystem, "UCX could not take a message handler: {}",
                ucs_status_string(status));
  Blob description;
  GIMLET_TRY(worker_.describe(owner_.segments, description));
  blob = encode(description);
  return {};
}

UcxTransport::~UcxTransport() {
  if (lanes_ == nullptr || worker_.handle() == nullptr) return;
  Turn turn(*this, Turn::Patience::kWait);
  for (const std::unique_ptr<Lane>& lane : made_lanes_) {
    close_endpoint(*lane);
    for (Lane::Remote& remote : lane->remote) ucp_rkey_destroy(remote.key);
  }
  // Whatever UCX still holds is given up with the worker; a peer that is gone can't delay us.
  for (int look = 0; look < 1000 && requests_ != 0; ++look) ucp_worker_progress(worker_.handle());
}

// ---- operations ---------------------------------------------------------------------------------

Operation& UcxTransport::take(OperationKind kind, Lane* lane, bool awaited) {
  if (unused_.empty()) {
    Operation& made = operations_.emplace_back();
    made.index = static_cast<std::uint32_t>(operations_.size() - 1);
    made.transport = this;
    unused_.push_back(&made);
  }
  Operation& op = *unused_.back();
  unused_.pop_back();
  ++live_;
  op.kind = kind;
  op.lane = lane;
  op.sequence = op.flush_sequence = op.signal_sequence = 0;
  op.result = nullptr;
  op.stage = Operation::Stage::kPut;
  op.finished = false;
  op.detached = !awaited;
  op.source_free = true;
  op.error = {};
  return op;
}

void UcxTransport::link(Operation& op) {
  Operation& head = op.lane->open;
  op.sequence = ++sequence_;
  op.before = head.before;
  op.after = &head;
  head.before->after = &op;
  head.before = &op;
  op.linked = true;
  mark_dirty(*op.lane);
}

void UcxTransport::finish(Operation& op) {
  if (op.finished) return;
  op.finished = true;
  op.source_free = true;
  if (op.linked) {
    op.before->after = op.after;
    op.after->before = op.before;
    op.linked = false;
    if (op.kind == OperationKind::kSignalled) --op.lane->signalled;
  }
  recycle_if_unused(op);
}

void UcxTransport::recycle_if_unused(Operation& op) {
  if (!op.finished || !op.detached || op.requests != 0) return;
  if (!op.error.ok()) defer(std::move(op.error));
  op.error = {};
  ++op.generation;  // a late reply to the old request finds nobody
  --live_;
  unused_.push_back(&op);
}

void UcxTransport::abandon(Operation& op) {
  op.detached = true;
  op.result = nullptr;
  if (op.kind == OperationKind::kFetch) return finish(op);
  recycle_if_unused(op);
}

void UcxTransport::defer(Status error) {
  if (deferred_.ok()) deferred_ = std::move(error);
}

void UcxTransport::mark_dirty(Lane& lane) {
  if (lane.dirty) return;
  lane.dirty = true;
  dirty_.push_back(&lane);
}

/// Follows a request that UCX was just given; it may be over already.
void UcxTransport::adopt(Operation& op, ucs_status_ptr_t request, bool unsent) {
  if (UCS_PTR_IS_PTR(request)) {
    ++op.requests;
    ++requests_;
    op.unsent = unsent;
    if (unsent) unsent_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  completed(op, UCS_PTR_RAW_STATUS(request));
}

void UcxTransport::on_sent(void* request, ucs_status_t status, void* operation) {
  auto& op = *static_cast<Operation*>(operation);
  UcxTransport& self = *op.transport;
  ucp_request_free(request);
  --op.requests;
  --self.requests_;
  if (op.unsent) self.unsent_.fetch_sub(1, std::memory_order_relaxed);
  op.unsent = false;
  self.completed(op, status);
}

void UcxTransport::completed(Operation& op, ucs_status_t status) {
  if (status != UCS_OK && op.lane != nullptr && !op.finished) {
    op.error = fail(Code::kRemote, "a request to PE {} failed: {}", op.lane->pe,
                    ucs_status_string(status));
    return finish(op);
  }
  switch (op.kind) {
    case OperationKind::kFetch:  // only its request has left
      return recycle_if_unused(op);
    case OperationKind::kSignalled:
      return op.finished ? recycle_if_unused(op) : advance_signalled(op);
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
  }
}

void UcxTransport::send(Operation& op, ucp_ep_h endpoint, const void* payload, std::size_t bytes,
                        bool reply) {
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  if (reply) param.flags |= UCP_AM_SEND_FLAG_REPLY;
  param.cb.send = &UcxTransport::on_sent;
  param.user_data = &op;
  op.header.source = owner_.rank;
  adopt(op,
        ucp_am_send_nbx(endpoint, kMessageId, &op.header, sizeof op.header, payload, bytes, &param),
        true);
}

Operation& UcxTransport::post_message(Lane& lane, const MessageHeader& header, const void* payload,
                                      std::size_t bytes, bool awaited) {
  Operation& op = take(OperationKind::kMessage, &lane, awaited);
  op.header = header;
  link(op);
  lane.last_message = op.sequence;
  send(op, lane.endpoint, payload, bytes, false);
  return op;
}

void UcxTransport::post_flush(Operation& op) {
  Lane& lane = *op.lane;
  op.flush_sequence = sequence_;
  lane.flushing_to = std::max(lane.flushing_to, sequence_);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &UcxTransport::on_sent;
  param.user_data = &op;
  adopt(op, ucp_ep_flush_nbx(lane.endpoint, &param), false);
}

void UcxTransport::ask_done(Lane& lane) {
  lane.asked_to = sequence_;
  Operation& op = take(OperationKind::kMessage, &lane);
  op.header = {};
  op.header.kind = MessageKind::kAskDone;
  op.header.ticket = sequence_;
  send(op, lane.endpoint, nullptr, 0, true);
}

/// Takes a large put_signal one step on: its put is done, or its flush, or its signal is sent.
void UcxTransport::advance_signalled(Operation& op) {
  Lane& lane = *op.lane;
  switch (op.stage) {
    case Operation::Stage::kPut:
      op.source_free = true;
      op.stage = Operation::Stage::kFlush;
      post_flush(op);
      return;
    case Operation::Stage::kFlush:
      lane.flushed_to = std::max(lane.flushed_to, op.flush_sequence);
      lane.heard = true;
      op.stage = Operation::Stage::kSignal;
      op.signal_sequence = lane.last_message = ++sequence_;
      send(op, lane.endpoint, nullptr, 0, false);
      return;
    case Operation::Stage::kSignal:
      op.stage = Operation::Stage::kAcknowledge;  // take_done finishes it
      return;
    case Operation::Stage::kAcknowledge:
      return;
  }
}

// ---- order --------------------------------------------------------------------------------------

bool UcxTransport::message_in_order(const Lane& lane) const {
  if (lane.flushed_to < std::min(fence_, lane.last_rma)) return false;
  if (lane.signalled == 0) return true;
  for (const Operation* op = lane.open.after; op != &lane.open && op->sequence <= fence_;
       op = op->after)
    if (op->kind == OperationKind::kSignalled && op->signal_sequence == 0) return false;
  return true;
}

bool UcxTransport::rma_in_order(const Lane& lane) const {
  if (lane.flushed_to < std::min(fence_, lane.last_rma)) return false;
  if (lane.acked_to < std::min(fence_, lane.last_message)) return false;
  if (lane.signalled == 0) return true;
  for (const Operation* op = lane.open.after; op != &lane.open && op->sequence <= fence_;
       op = op->after)
    if (op->kind == OperationKind::kSignalled) return false;
  return true;
}

bool UcxTransport::done_to(const Lane& lane, std::uint64_t sequence) const {
  const Operation* oldest = lane.open.after;
  return (oldest == &lane.open || oldest->sequence > sequence) &&
         lane.flushed_to >= std::min(sequence, lane.last_rma) &&
         lane.acked_to >= std::min(sequence, lane.last_message);
}

bool UcxTransport::clean(const Lane& lane) const {
  return lane.open.after == &lane.open && lane.flushed_to >= lane.last_rma &&
         lane.acked_to >= lane.last_message;
}

/// Starts what makes everything up to `sequence` done, unless it is under way.
void UcxTransport::push(Lane& lane, std::uint64_t sequence) {
  if (lane.state.load(std::memory_order_relaxed) != Lane::State::kReady) return;
  if (lane.flushing_to < std::min(sequence, lane.last_rma))
    post_flush(take(OperationKind::kFlush, &lane));
  std::uint64_t ask_to = std::min(sequence, lane.last_message);
  if (lane.signalled != 0) {
    for (const Operation* op = lane.open.after; op != &lane.open && op->sequence <= sequence;
         op = op->after)
      ask_to = std::max(ask_to, op->signal_sequence);
  }
  if (lane.asked_to < ask_to) ask_done(lane);
}

// ---- waiting ------------------------------------------------------------------------------------

/// Ends the wait for a peer that died, or that never answered.
Status UcxTransport::look_around(Lane& lane, std::uint64_t waited_ns) {
  std::string why;
  if (owner_.dead_peer && owner_.dead_peer() == lane.pe) {
    why = fmt::format("PE {} died", lane.pe);
  } else if (!lane.heard && static_cast<double>(waited_ns) > owner_.connect_timeout * 1e9) {
    why = fmt::format("PE {} did not answer within {} s of first contact", lane.pe,
                      owner_.connect_timeout);
  }
  if (why.empty()) return {};
  Turn turn(*this, Turn::Patience::kWait);
  fail_lane(lane, std::move(why));
  return fail(Code::kRemote, "{}", lane.why_failed);
}

template <class Done>
Status UcxTransport::wait_on(Lane& lane, Done&& done) {
  device::Backoff backoff;
  std::uint64_t started_ns = 0;
  for (unsigned look = 1;; ++look) {
    if (Turn turn(*this); turn) {
      caller_turns_.store(caller_turns_.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
      if (done()) return {};
      if (lane.state.load(std::memory_order_relaxed) == Lane::State::kFailed)
        return fail(Code::kRemote, "{}", lane.why_failed);
      ucp_worker_progress(worker_.handle());
      if (done()) return {};
    }
    if (look % kLookAroundEvery == 0) {
      const std::uint64_t now = device::now_ns();
      if (started_ns == 0) started_ns = now;
      GIMLET_TRY(look_around(lane, now - started_ns));
    }
    backoff.step();
  }
}

/// Posts when the order allows it and there is room; with `wait` returns when the source may be
/// reused and the result is here.
template <class InOrder, class Post>
Status UcxTransport::issue(Lane& lane, bool wait, InOrder&& in_order, Post&& post) {
  Operation* op = nullptr;
  bool posted = false;
  Status result;
  Status waited = wait_on(lane, [&] {
    if (!posted) {
      if (lane.state.load(std::memory_order_relaxed) != Lane::State::kReady || !room())
        return false;
      if (!in_order(lane)) {
        push(lane, fence_);
        return false;
      }
      Operation& made = post();
      posted = true;
      if (wait) op = &made;
    }
    if (!wait) return true;  // the operation may be recycled already
    if (!op->finished && !(op->kind == OperationKind::kSignalled && op->source_free)) return false;
    if (op->finished) result = std::exchange(op->error, {});
    op->detached = true;
    recycle_if_unused(*op);
    return true;
  });
  if (!waited.ok() && op != nullptr) {
    Turn turn(*this, Turn::Patience::kWait);
    abandon(*op);
  }
  leave();
  return waited.ok() ? std::move(result) : std::move(waited);
}

/// A caller goes away: what it leaves unsent is the helper's business.
void UcxTransport::leave() {
  if (unsent_.load(std::memory_order_relaxed) != 0 &&
      helper_asleep_.load(std::memory_order_relaxed) &&
      helper_asleep_.exchange(false, std::memory_order_relaxed))
    worker_.wake();
}

// ---- lanes --------------------------------------------------------------------------------------

Status UcxTransport::reach(int pe, Lane*& lane) {
  if (pe < 0 || pe >= owner_.size)
    return fail(Code::kInvalidArgument, "there is no PE {}, allowed are 0 to {}", pe,
                owner_.size - 1);
  std::atomic<Lane*>& entry = lanes_[static_cast<std::size_t>(pe)];
  lane = entry.load(std::memory_order_acquire);
  if (lane == nullptr) {
    Turn turn(*this, Turn::Patience::kWait);
    lane = entry.load(std::memory_order_relaxed);
    if (lane == nullptr) {
      lane = made_lanes_.emplace_back(std::make_unique<Lane>(pe)).get();
      // Release: the acquire load above sees the lane's fields.
      entry.store(lane, std::memory_order_release);
    }
  }
  // Acquire takes open_endpoint's release store.
  if (lane->state.load(std::memory_order_acquire) == Lane::State::kReady) return {};
  return connect(*lane);
}

Status UcxTransport::connect(Lane& lane) {
  device::Backoff backoff;
  const std::uint64_t started_ns = device::now_ns();
  for (;;) {
    switch (lane.state.load(std::memory_order_acquire)) {
      case Lane::State::kReady:
        return {};
      case Lane::State::kFailed: {
        Turn turn(*this, Turn::Patience::kWait);
        return fail(Code::kRemote, "{}", lane.why_failed);
      }
      case Lane::State::kCold:
      case Lane::State::kResolving:
        break;
    }
    std::vector<std::byte> blob;
    Status why;
    switch (owner_.find_blob(lane.pe, blob, why)) {
      case TransportOwner::Lookup::kReady:
        GIMLET_TRY(open_endpoint(lane, blob));
        continue;
      case TransportOwner::Lookup::kFailed: {
        Turn turn(*this, Turn::Patience::kWait);
        fail_lane(lane, fmt::format("PE {} can't be reached: {}", lane.pe, why.message()));
        continue;
      }
      case TransportOwner::Lookup::kPending:
        break;
    }
    if (Turn turn(*this); turn) {
      if (lane.state.load(std::memory_order_relaxed) == Lane::State::kCold)
        lane.state.store(Lane::State::kResolving, std::memory_order_relaxed);
      ucp_worker_progress(worker_.handle());
    }
    GIMLET_TRY(look_around(lane, device::now_ns() - started_ns));
    backoff.step();
  }
}

Status UcxTransport::open_endpoint(Lane& lane, std::span<const std::byte> bytes) {
  Turn turn(*this, Turn::Patience::kWait);
  if (lane.endpoint != nullptr) return {};
  Blob blob;
  if (Status status = decode(bytes, blob); !status.ok()) {
    fail_lane(lane, fmt::format("PE {} can't be reached: {}", lane.pe, status.message()));
    return status;
  }
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(blob.worker_address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler.cb = &UcxTransport::on_endpoint_error;
  params.err_handler.arg = &lane;
  ucs_status_t status = ucp_ep_create(worker_.handle(), &params, &lane.endpoint);
  if (status != UCS_OK) lane.endpoint = nullptr;
  for (const RemoteSegment& segment : blob.segments) {
    if (status != UCS_OK) break;
    ucp_rkey_h key = nullptr;
    status = ucp_ep_rkey_unpack(lane.endpoint, segment.key.data(), &key);
    if (status == UCS_OK) lane.remote.push_back({segment.base, segment.size, key});
  }
  if (status != UCS_OK) {
    fail_lane(lane, fmt::format("PE {} can't be reached: UCX has no way to it: {}", lane.pe,
                                ucs_status_string(status)));
    return fail(Code::kUnreachable, "{}", lane.why_failed);
  }
  endpoints_.fetch_add(1, std::memory_order_relaxed);
  log::debug("ucx: endpoint to PE {}", lane.pe);
  // Release: reach's acquire load sees endpoint and keys.
  lane.state.store(Lane::State::kReady, std::memory_order_release);
  return {};
}

void UcxTransport::on_endpoint_error(void* lane, ucp_ep_h, ucs_status_t status) {
  auto& failed = *static_cast<Lane*>(lane);
  if (failed.state.load(std::memory_order_relaxed) == Lane::State::kFailed) return;
  failed.why_failed =
      fmt::format("PE {} can't be reached any more: {}", failed.pe, ucs_status_string(status));
  failed.state.store(Lane::State::kFailed, std::memory_order_release);
}

void UcxTransport::fail_lane(Lane& lane, std::string why) {
  if (lane.state.load(std::memory_order_relaxed) == Lane::State::kFailed) return;
  lane.why_failed = std::move(why);
  lane.state.store(Lane::State::kFailed, std::memory_order_release);
}

void UcxTransport::close_endpoint(Lane& lane) {
  if (lane.endpoint == nullptr) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  ucs_status_ptr_t closing = ucp_ep_close_nbx(std::exchange(lane.endpoint, nullptr), &param);
  if (UCS_PTR_IS_PTR(closing)) {
    for (int look = 0; look < 1000 && ucp_request_check_status(closing) == UCS_INPROGRESS; ++look)
      ucp_worker_progress(worker_.handle());
    ucp_request_free(closing);
  }
}

// ---- puts and gets ------------------------------------------------------------------------------

Status UcxTransport::resolve(const Lane& lane, MessageKind kind, const RemoteAddress& place,
                             std::size_t bytes, ucp_rkey_h& key, std::uint64_t& address) const {
  const bool known = place.segment < lane.remote.size();
  const std::uint64_t size = known ? lane.remote[place.segment].size : 0;
  if (!known || place.offset > size || bytes > size - place.offset)
    return refused(lane.pe, kind, bytes, place.segment, place.offset, size);
  key = lane.remote[place.segment].key;
  address = lane.remote[place.segment].base + place.offset;
  return {};
}

Status UcxTransport::local_put(const RemoteAddress& dest, const void* source, std::size_t bytes) {
  std::byte* place = memory_.locate(dest.segment, dest.offset, bytes);
  if (place == nullptr)
    return refused(dest.pe, MessageKind::kPut, bytes, dest.segment, dest.offset,
                   memory_.size_of(dest.segment));
  store_payload(place, source, bytes);
  return {};
}

Status UcxTransport::start_put(const RemoteAddress& dest, const void* source, std::size_t bytes,
                               bool wait) {
  if (bytes == 0) return {};
  if (dest.pe == owner_.rank) return local_put(dest, source, bytes);
  Lane* lane = nullptr;
  GIMLET_TRY(reach(dest.pe, lane));
  if (bytes <= worker_.message_limit())
    return issue(
        *lane, wait, [this](const Lane& l) { return message_in_order(l); },
        [&]() -> Operation& {
          return post_message(*lane, header_for(MessageKind::kPut, dest, bytes), source, bytes,
                              wait);
        });

  ucp_rkey_h key = nullptr;
  std::uint64_t address = 0;
  GIMLET_TRY(resolve(*lane, MessageKind::kPut, dest, bytes, key, address));
  return issue(
      *lane, wait, [this](const Lane& l) { return rma_in_order(l); },
      [&]() -> Operation& {
        Operation& op = take(OperationKind::kPut, lane, wait);
        link(op);
        lane->last_rma = op.sequence;
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        param.cb.send = &UcxTransport::on_sent;
        param.user_data = &op;
        adopt(op, ucp_put_nbx(lane->endpoint, source, bytes, address, key, &param), true);
        return op;
      });
}

Status UcxTransport::put(const RemoteAddress& dest, const void* source, std::size_t bytes) {
  return start_put(dest, source, bytes, true);
}
Status UcxTransport::put_nbi(const RemoteAddress& dest, const void* source, std::size_t bytes) {
  return start_put(dest, source, bytes, false);
}

Status UcxTransport::start_get(void* dest, const RemoteAddress& source, std::size_t bytes,
                               bool wait) {
  if (bytes == 0) return {};
  if (source.pe == owner_.rank) {
    const std::byte* place = memory_.locate(source.segment, source.offset, bytes);
    if (place == nullptr)
      return refused(source.pe, MessageKind::kGet, bytes, source.segment, source.offset,
                     memory_.size_of(source.segment));
    load_payload(dest, place, bytes);
    return {};
  }
  Lane* lane = nullptr;
  GIMLET_TRY(reach(source.pe, lane));
  ucp_rkey_h key = nullptr;
  std::uint64_t address = 0;
  GIMLET_TRY(resolve(*lane, MessageKind::kGet, source, bytes, key, address));
  return issue(
      *lane, wait, [](const Lane&) { return true; },
      [&]() -> Operation& {
        Operation& op = take(OperationKind::kGet, lane, wait);
        link(op);
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        param.cb.send = &UcxTransport::on_sent;
        param.user_data = &op;
        adopt(op, ucp_get_nbx(lane->endpoint, dest, bytes, address, key, &param), false);
        return op;
      });
}

Status UcxTransport::get(void* dest, const RemoteAddress& source, std::size_t bytes) {
  return start_get(dest, source, bytes, true);
}
Status UcxTransport::get_nbi(void* dest, const RemoteAddress& source, std::size_t bytes) {
  return start_get(dest, source, bytes, false);
}

// ---- updates and signals ------------------------------------------------------------------------

Status UcxTransport::start_amo(AmoOp op, unsigned width, const RemoteAddress& word,
                               std::uint64_t operand, std::uint64_t compare, void* fetched,
                               bool wait) {
  const bool fetches = fetched != nullptr;
  if (word.pe == owner_.rank) {
    std::byte* place = memory_.locate_word(word.segment, word.offset, width);
    if (place == nullptr)
      return refused(word.pe, MessageKind::kUpdate, width, word.segment, word.offset,
                     memory_.size_of(word.segment));
    const std::uint64_t old = update_word(place, width, op, operand, compare);
    if (fetches) std::memcpy(fetched, &old, width);
    return {};
  }
  Lane* lane = nullptr;
  GIMLET_TRY(reach(word.pe, lane));
  MessageHeader header =
      header_for(fetches ? MessageKind::kFetch : MessageKind::kUpdate, word, width);
  header.op = static_cast<std::uint8_t>(op);
  header.width = static_cast<std::uint8_t>(width);
  header.operand = operand;
  header.word_offset = compare;
  return issue(
      *lane, wait, [this](const Lane& l) { return message_in_order(l); },
      [&]() -> Operation& {
        if (!fetches) return post_message(*lane, header, nullptr, 0, wait);
        Operation& fetch = take(OperationKind::kFetch, lane, wait);
        header.ticket = fetch.ticket();
        fetch.header = header;
        fetch.result = fetched;
        link(fetch);
        // Its answer is its acknowledgement, so it does not count as a message to ask about.
        send(fetch, lane->endpoint, nullptr, 0, true);
        return fetch;
      });
}

Status UcxTransport::amo(AmoOp op, unsigned width, const RemoteAddress& word, std::uint64_t operand,
                         std::uint64_t compare, void* fetched) {
  return start_amo(op, width, word, operand, compare, fetched, true);
}
Status UcxTransport::amo_nbi(AmoOp op, unsigned width, const RemoteAddress& word,
                             std::uint64_t operand, std::uint64_t compare, void* fetched) {
  return start_amo(op, width, word, operand, compare, fetched, false);
}

Status UcxTransport::start_signal(const RemoteAddress& dest, const void* source, std::size_t bytes,
                                  const RemoteAddress& signal, std::uint64_t value, SignalOp op,
                                  bool wait) {
  const AmoOp update = op == SignalOp::kSet ? AmoOp::kSet : AmoOp::kAdd;
  if (bytes == 0) return start_amo(update, 8, signal, value, 0, nullptr, wait);
  if (dest.pe == owner_.rank) {
    GIMLET_TRY(local_put(dest, source, bytes));
    return start_amo(update, 8, signal, value, 0, nullptr, wait);
  }
  Lane* lane = nullptr;
  GIMLET_TRY(reach(dest.pe, lane));
  if (bytes <= worker_.message_limit()) {
    MessageHeader header = header_for(MessageKind::kPutSignal, dest, bytes);
    header.op = static_cast<std::uint8_t>(update);
    header.width = 8;
    header.word_segment = signal.segment;
    header.word_offset = signal.offset;
    header.operand = value;
    return issue(
        *lane, wait, [this](const Lane& l) { return message_in_order(l); },
        [&]() -> Operation& { return post_message(*lane, header, source, bytes, wait); });
  }

  ucp_rkey_h key = nullptr;
  std::uint64_t address = 0;
  GIMLET_TRY(resolve(*lane, MessageKind::kPut, dest, bytes, key, address));
  return issue(
      *lane, wait, [this](const Lane& l) { return rma_in_order(l); },
      [&]() -> Operation& {
        Operation& chain = take(OperationKind::kSignalled, lane, wait);
        chain.header = header_for(MessageKind::kUpdate, signal, 8);
        chain.header.op = static_cast<std::uint8_t>(update);
        chain.header.width = 8;
        chain.header.operand = value;
        chain.source_free = false;
        link(chain);
        ++lane->signalled;
        lane->last_rma = chain.sequence;
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        param.cb.send = &UcxTransport::on_sent;
        param.user_data = &chain;
        adopt(chain, ucp_put_nbx(lane->endpoint, source, bytes, address, key, &param), true);
        return chain;
      });
}

Status UcxTransport::put_signal(const RemoteAddress& dest, const void* source, std::size_t bytes,
                                const RemoteAddress& signal, std::uint64_t value, SignalOp op) {
  return start_signal(dest, source, bytes, signal, value, op, true);
}
Status UcxTransport::put_signal_nbi(const RemoteAddress& dest, const void* source,
                                    std::size_t bytes, const RemoteAddress& signal,
                                    std::uint64_t value, SignalOp op) {
  return start_signal(dest, source, bytes, signal, value, op, false);
}

// ---- ordering calls -----------------------------------------------------------------------------

Status UcxTransport::fence() {
  // Own stores and puts to this PE itself.
  std::atomic_thread_fence(std::memory_order_release);
  Turn turn(*this, Turn::Patience::kWait);
  fence_ = sequence_;
  return {};
}

/// The youngest lane in use that owes something up to `sequence`; forgets lanes that owe nothing.
Lane* UcxTransport::first_not_done(std::uint64_t sequence, Status& failed) {
  for (std::size_t left = dirty_.size(); left != 0; --left) {
    Lane& lane = *dirty_[left - 1];
    const bool lost = lane.state.load(std::memory_order_relaxed) == Lane::State::kFailed;
    if (lost && failed.ok()) failed = fail(Code::kRemote, "{}", lane.why_failed);
    if (lost || clean(lane)) {
      lane.dirty = false;
      dirty_[left - 1] = dirty_.back();
      dirty_.pop_back();
      continue;
    }
    if (!done_to(lane, sequence)) return &lane;
  }
  return nullptr;
}

Status UcxTransport::quiet() {
  // Own stores before, own loads after: a store-to-load barrier.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::uint64_t sequence = 0;
  Lane* owing = nullptr;
  Status result;
  {
    Turn turn(*this, Turn::Patience::kWait);
    sequence = sequence_;
    for (Lane* lane : dirty_) push(*lane, sequence);
    owing = first_not_done(sequence, result);
  }
  while (owing != nullptr) {
    Status waited = wait_on(*owing, [&] {
      if (!done_to(*owing, sequence)) {
        push(*owing, sequence);
        return false;
      }
      owing = first_not_done(sequence, result);
      return true;
    });
    if (waited.ok()) continue;
    Turn turn(*this, Turn::Patience::kWait);
    owing = first_not_done(sequence, result);
  }
  Turn turn(*this, Turn::Patience::kWait);
  if (!deferred_.ok()) return std::exchange(deferred_, {});
  return result;
}

// ---- progress -----------------------------------------------------------------------------------

bool UcxTransport::progress() {
  const bool helper = pthread_equal(helper_.load(std::memory_order_relaxed), ::pthread_self()) != 0;
  if (helper) helper_asleep_.store(false, std::memory_order_relaxed);
  Turn turn(*this);
  if (!turn) return false;
  if (!helper)
    caller_turns_.store(caller_turns_.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  return ucp_worker_progress(worker_.handle()) != 0;
}

bool UcxTransport::arm() {
  helper_.store(::pthread_self(), std::memory_order_relaxed);
  const std::uint64_t turns = caller_turns_.load(std::memory_order_relaxed);
  if (turns != seen_turns_) {
    seen_turns_ = turns;
    worker_.nap();
    return true;
  }
  Turn turn(*this);
  if (!turn) return false;
  // What callers left unsent moves only by progress: look again after a nap. Whoever leaves
  // something behind later takes the token after us and sees that the helper sleeps.
  if (unsent_.load(std::memory_order_relaxed) == 0 && worker_.watch()) {
    busy_looks_ = 0;
    helper_asleep_.store(true, std::memory_order_relaxed);
    return true;
  }
  if (++busy_looks_ < kBusyLooks) return false;
  busy_looks_ = 0;
  worker_.nap();
  return true;
}

// ---- serving ------------------------------------------------------------------------------------

ucs_status_t UcxTransport::on_message(void* self, const void* header, size_t header_length,
                                      void* data, size_t length, const ucp_am_recv_param_t* param) {
  auto& transport = *static_cast<UcxTransport*>(self);
  MessageHeader message;
  const bool whole =
      header_length == sizeof message && (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  if (whole) std::memcpy(&message, header, sizeof message);
  const ucp_ep_h reply_to =
      (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 ? param->reply_ep : nullptr;
  if (!whole || message.source < 0 || message.source >= transport.owner_.size ||
      !transport.serve(message, static_cast<const std::byte*>(data), length, reply_to))
    transport.strangers_.fetch_add(1, std::memory_order_relaxed);
  return UCS_OK;
}

/// False: the message is none of ours.
bool UcxTransport::serve(const MessageHeader& header, const std::byte* data, std::size_t length,
                         ucp_ep_h reply_to) {
  switch (header.kind) {
    case MessageKind::kPut:
      if (length != header.bytes) return false;
      serve_put(header, data);
      return true;
    case MessageKind::kPutSignal:
      if (length != header.bytes) return false;
      serve_put_signal(header, data);
      return true;
    case MessageKind::kUpdate:
      serve_update(header, nullptr);
      return true;
    case MessageKind::kFetch:
      if (reply_to == nullptr) return false;
      serve_update(header, reply_to);
      return true;
    case MessageKind::kAskDone:
      if (reply_to == nullptr) return false;
      serve_ask_done(header, reply_to);
      return true;
    case MessageKind::kValue:
      return take_value(header);
    case MessageKind::kDone:
      return take_done(header);
    case MessageKind::kGet:
      return false;
  }
  return false;
}

void UcxTransport::serve_put(const MessageHeader& header, const std::byte* data) {
  std::byte* place = memory_.locate(header.segment, header.offset, header.bytes);
  if (place == nullptr) return refuse(header);
  store_payload(place, data, header.bytes);
}

void UcxTransport::serve_put_signal(const MessageHeader& header, const std::byte* data) {
  std::byte* place = memory_.locate(header.segment, header.offset, header.bytes);
  std::byte* word = memory_.locate_word(header.word_segment, header.word_offset, 8);
  if (place == nullptr) return refuse(header);
  if (word == nullptr) {
    MessageHeader signal = header;
    signal.segment = header.word_segment;
    signal.offset = header.word_offset;
    signal.bytes = 8;
    return refuse(signal);
  }
  store_payload(place, data, header.bytes);
  // Sequentially consistent: whoever reads the signal with acquire sees the payload.
  update_word(word, 8, static_cast<AmoOp>(header.op), header.operand, 0);
}

void UcxTransport::serve_update(const MessageHeader& header, ucp_ep_h reply_to) {
  std::byte* word = memory_.locate_word(header.segment, header.offset, header.width);
  const bool allowed = word != nullptr && header.op <= static_cast<std::uint8_t>(AmoOp::kXor);
  std::uint64_t old = 0;
  if (allowed)
    old = update_word(word, header.width, static_cast<AmoOp>(header.op), header.operand,
                      header.word_offset);
  if (reply_to == nullptr) {
    if (!allowed) refuse(header);
    return;
  }
  MessageHeader answer = header;
  answer.kind = MessageKind::kValue;
  answer.op = static_cast<std::uint8_t>(header.kind);
  answer.refused = allowed ? 0 : 1;
  answer.operand = allowed ? old : memory_.size_of(header.segment);
  reply(reply_to, answer);
}

/// Messages of a source are handled in order, so everything before this one is done.
void UcxTransport::serve_ask_done(const MessageHeader& header, ucp_ep_h reply_to) {
  MessageHeader answer = header;
  if (const auto found = refusals_.find(header.source); found != refusals_.end()) {
    answer = found->second.first;
    answer.op = static_cast<std::uint8_t>(answer.kind);
    answer.refused = 1;
    answer.operand = memory_.size_of(answer.segment);
    refusals_.erase(found);
  }
  answer.kind = MessageKind::kDone;
  answer.ticket = header.ticket;
  reply(reply_to, answer);
}

/// Kept until the source asks.
void UcxTransport::refuse(const MessageHeader& header) {
  ++refusals_.try_emplace(header.source, Refusals{header, 0}).first->second.count;
}

void UcxTransport::reply(ucp_ep_h to, const MessageHeader& header) {
  Operation& op = take(OperationKind::kMessage, nullptr);
  op.header = header;
  send(op, to, nullptr, 0, false);
}

bool UcxTransport::take_value(const MessageHeader& header) {
  const std::uint32_t index = static_cast<std::uint32_t>(header.ticket);
  if (index >= operations_.size()) return false;
  Operation& op = operations_[index];
  if (op.ticket() != header.ticket || op.kind != OperationKind::kFetch || op.finished) return false;
  if (op.lane->pe != header.source) return false;
  op.lane->heard = true;
  if (header.refused != 0) {
    op.error = refused(header.source, static_cast<MessageKind>(header.op), header.bytes,
                       header.segment, header.offset, header.operand);
  } else if (op.result != nullptr) {
    std::memcpy(op.result, &header.operand, op.header.width);
  }
  finish(op);
  return true;
}

bool UcxTransport::take_done(const MessageHeader& header) {
  Lane* lane = lanes_[static_cast<std::size_t>(header.source)].load(std::memory_order_relaxed);
  if (lane == nullptr || header.ticket > lane->asked_to) return false;
  lane->heard = true;
  lane->acked_to = std::max(lane->acked_to, header.ticket);
  if (header.refused != 0)
    defer(refused(header.source, static_cast<MessageKind>(header.op), header.bytes, header.segment,
                  header.offset, header.operand));
  for (Operation* op = lane->open.after; lane->signalled != 0 && op != &lane->open;) {
    Operation& here = *std::exchange(op, op->after);
    if (here.kind == OperationKind::kSignalled && here.signal_sequence != 0 &&
        here.signal_sequence <= lane->acked_to)
      finish(here);
  }
  return true;
}

}  // namespace gimlet::pgas::ucx

namespace gimlet::pgas {

Status make_ucx_transport(const TransportOwner& owner, std::unique_ptr<Transport>& out,
                          std::vector<std::byte>& blob) {
  auto transport = std::make_unique<ucx::UcxTransport>(owner);
  GIMLET_TRY(transport->open(blob));
  out = std::move(transport);
  return {};
}

}  // namespace gimlet::pgas
