// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "device/backoff.h"
#include "device/clock.h"
#include "device/log.h"
#include "pgas/transport/ucx_transport.h"

namespace gimlet::pgas::ucx {

/// Under the token.
Lane* UcxTransport::make_lane(int pe) {
  std::atomic<Lane*>& entry = lanes_[static_cast<std::size_t>(pe)];
  Lane* lane = entry.load(std::memory_order_relaxed);
  if (lane != nullptr) return lane;
  lane = made_lanes_.emplace_back(std::make_unique<Lane>(*this, pe)).get();
  // Release: the acquire load of who looks for it sees the lane's fields.
  entry.store(lane, std::memory_order_release);
  return lane;
}

Status UcxTransport::reach(int pe, Lane*& lane) {
  if (pe < 0 || pe >= owner_.size) {
    return fail(Code::kInvalidArgument, "there is no PE {}, allowed are 0 to {}", pe,
                owner_.size - 1);
  }
  std::atomic<Lane*>& entry = lanes_[static_cast<std::size_t>(pe)];
  lane = entry.load(std::memory_order_acquire);
  if (lane == nullptr) {
    Turn turn(*this, Turn::Patience::kWait);
    lane = make_lane(pe);
  }
  // Acquire takes try_open's release store.
  if (lane->state.load(std::memory_order_acquire) == Lane::State::kReady) return {};
  return connect(*lane);
}

/// First contact: asks for the peer's blob until it is there, and serves peers meanwhile.
Status UcxTransport::connect(Lane& lane) {
  device::Backoff backoff;
  const std::uint64_t started_ns = device::now_ns();
  for (;;) {
    const Lane::State state = lane.state.load(std::memory_order_acquire);
    if (state == Lane::State::kReady) return {};
    if (state == Lane::State::kFailed) {
      Turn turn(*this, Turn::Patience::kWait);
      return fail(Code::kUnreachable, "{}", lane.why_failed);
    }
    std::vector<std::byte> blob;
    Status why;
    const TransportOwner::Lookup found = owner_.find_blob(lane.pe, blob, why);
    if (found == TransportOwner::Lookup::kReady) {
      open_endpoint(lane, blob);
      continue;
    }
    if (found == TransportOwner::Lookup::kFailed) {
      Turn turn(*this, Turn::Patience::kWait);
      fail_lane(lane, fmt::format("PE {} can't be reached: {}", lane.pe, why.message()));
      continue;
    }
    if (Turn turn(*this, Turn::Patience::kTry); turn) {
      if (lane.is(Lane::State::kCold))
        lane.state.store(Lane::State::kResolving, std::memory_order_relaxed);
      ucp_worker_progress(worker_.handle());
    }
    GIMLET_TRY(look_around(lane, device::now_ns() - started_ns));
    backoff.step();
  }
}

void UcxTransport::open_endpoint(Lane& lane, std::span<const std::byte> blob) {
  {
    Turn turn(*this, Turn::Patience::kWait);
    if (lane.is(Lane::State::kReady) || lane.is(Lane::State::kFailed)) return;  // by another thread
    if (const Status status = try_open(lane, blob); !status.ok())
      return fail_lane(lane, fmt::format("PE {} can't be reached: {}", lane.pe, status.message()));
  }
  log::debug("ucx: endpoint to PE {}", lane.pe);
}

Status UcxTransport::try_open(Lane& lane, std::span<const std::byte> bytes) {
  Blob blob;
  GIMLET_TRY(decode(bytes, blob));
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(blob.worker_address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &UcxTransport::on_endpoint_error;
  params.err_handler.arg = &lane;
  if (const ucs_status_t status = ucp_ep_create(worker_.handle(), &params, &lane.endpoint);
      status != UCS_OK) {
    lane.endpoint = nullptr;
    return fail(Code::kUnreachable, "UCX has no way to it: {}", ucs_status_string(status));
  }
  endpoints_.fetch_add(1, std::memory_order_relaxed);
  for (const RemoteSegment& segment : blob.segments) {
    ucp_rkey_h key = nullptr;
    if (const ucs_status_t status = ucp_ep_rkey_unpack(lane.endpoint, segment.key.data(), &key);
        status != UCS_OK) {
      return fail(Code::kUnreachable, "UCX does not take its remote key: {}",
                  ucs_status_string(status));
    }
    const bool native = bulk_ == BulkPath::kDetect ? segment.key != worker_.empty_key()
                                                   : bulk_ == BulkPath::kNative;
    lane.remote.push_back({segment.base, segment.size, key, native});
  }
  // Release: reach's acquire load sees endpoint and keys.
  lane.state.store(Lane::State::kReady, std::memory_order_release);
  return {};
}

void UcxTransport::on_endpoint_error(void* lane, ucp_ep_h, ucs_status_t status) {
  auto& failed = *static_cast<Lane*>(lane);
  failed.transport.fail_lane(failed, fmt::format("PE {} can't be reached any more: {}", failed.pe,
                                                 ucs_status_string(status)));
}

/// Nothing is waited for on this lane any more. Messages that UCX still holds end when the endpoint
/// is closed, which UCX doesn't allow in its callbacks.
void UcxTransport::fail_lane(Lane& lane, std::string why) {
  if (lane.is(Lane::State::kFailed)) return;
  lane.why_failed = std::move(why);
  lane.state.store(Lane::State::kFailed, std::memory_order_release);
  if (lane.endpoint != nullptr) failed_.push_back(&lane);
  if (staging_ != nullptr) staging_->forget(lane.pe);
  for (Operation* head : {&lane.open, &lane.carried}) {
    for (Operation* next = head->after; next != head;) {
      Operation& op = *std::exchange(next, next->after);
      const bool waits_for_peer =
          op.kind == OperationKind::kFetch || op.kind == OperationKind::kRead ||
          op.kind == OperationKind::kDrain || op.stage == Operation::Stage::kAcknowledge;
      if (waits_for_peer) lose(op);
    }
  }
}

/// Ends an operation of a failed lane.
void UcxTransport::lose(Operation& op) {
  op.result = nullptr;
  op.error = fail(Code::kRemote, "{}", op.lane->why_failed);
  finish(op);
}

/// Waits for a peer end when it is known to be dead; proxies wait without looking around.
void UcxTransport::bury(int dead) {
  if (dead < 0 || dead >= owner_.size || dead == owner_.rank) return;
  Lane* lane = lanes_[static_cast<std::size_t>(dead)].load(std::memory_order_relaxed);
  if (lane != nullptr) fail_lane(*lane, fmt::format("PE {} died", dead));
  if (staging_ != nullptr) staging_->forget(dead);
}

void UcxTransport::close_failed() {
  while (!failed_.empty()) {
    Lane& lane = *failed_.back();
    failed_.pop_back();
    close_endpoint(lane);
  }
}

void UcxTransport::close_endpoint(Lane& lane) {
  if (lane.endpoint == nullptr) return;
  Operation& op = operations_.take(OperationKind::kMessage, nullptr, false);
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  param.cb.send = &UcxTransport::on_completed;
  param.user_data = &op;
  adopt(op, ucp_ep_close_nbx(std::exchange(lane.endpoint, nullptr), &param));
}

}  // namespace gimlet::pgas::ucx
