// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_UNIT_UCX_STRANGER_H
#define GIMLET_TESTS_UNIT_UCX_STRANGER_H

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "pgas/transport/ucx_wire.h"
#include "ucx_world.h"

namespace gimlet::pgas::testing {

/// Another UCX program that found the worker's address.
class Stranger {
 public:
  Stranger(const Pe& pe, int peer) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM;
    EXPECT(ucp_init(&params, nullptr, &context_) == UCS_OK);
    ucp_worker_params_t worker{};
    EXPECT(ucp_worker_create(context_, &worker, &worker_) == UCS_OK);
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = ucx::kMessageId;
    handler.cb = &Stranger::on_answer;
    handler.arg = this;
    EXPECT(ucp_worker_set_am_recv_handler(worker_, &handler) == UCS_OK);
    const testing::World::Published& published = pe.world->blobs[static_cast<std::size_t>(peer)];
    ucx::Blob blob;
    EXPECT_OK(ucx::decode({published.bytes.data(), published.length.load()}, blob));
    ucp_ep_params_t endpoint{};
    endpoint.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    endpoint.address = reinterpret_cast<const ucp_address_t*>(blob.worker_address.data());
    EXPECT(ucp_ep_create(worker_, &endpoint, &endpoint_) == UCS_OK);
  }
  ~Stranger() {
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  /// The payload is all sevens.
  void say(const Pe& pe, const void* header, std::size_t header_bytes, std::size_t bytes = 0,
           unsigned flags = UCP_AM_SEND_FLAG_EAGER) {
    send(pe, header, header_bytes, payload_.data(), bytes, flags);
  }
  void say(const Pe& pe, const ucx::MessageHeader& header, std::size_t bytes = 0) {
    say(pe, &header, sizeof header, bytes);
  }
  /// With an address for the answer, which is waited for. In the shape of a message of a PE: UCX
  /// does not take every other one.
  ucx::MessageHeader ask(const Pe& pe, const ucx::MessageHeader& header) {
    const unsigned before = answers_;
    send(pe, nullptr, 0, &header, sizeof header, UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY);
    while (answers_ == before) ucp_worker_progress(worker_);
    return answer_;
  }
  /// With an address, but nothing is to come back.
  void ask_in_vain(const Pe& pe, const ucx::MessageHeader& header) {
    send(pe, nullptr, 0, &header, sizeof header, UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY);
  }
  unsigned answers() const { return answers_; }

 private:
  void send(const Pe& pe, const void* header, std::size_t header_bytes, const void* payload,
            std::size_t bytes, unsigned flags) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = flags;
    void* request =
        ucp_am_send_nbx(endpoint_, ucx::kMessageId, header, header_bytes, payload, bytes, &param);
    EXPECT(!UCS_PTR_IS_ERR(request));
    if (request == nullptr) return;
    // A message that is refused at its announcement ends when the receiver says so.
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
  }
  static ucs_status_t on_answer(void* self, const void*, size_t, void* data, size_t length,
                                const ucp_am_recv_param_t*) {
    auto& stranger = *static_cast<Stranger*>(self);
    if (length == sizeof stranger.answer_) std::memcpy(&stranger.answer_, data, length);
    ++stranger.answers_;
    return UCS_OK;
  }

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucx::MessageHeader answer_{};
  unsigned answers_ = 0;
  std::vector<std::byte> payload_ = std::vector<std::byte>(4096, std::byte{7});
};

}  // namespace gimlet::pgas::testing

#endif
