// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_UCX_TRANSPORT_H
#define GIMLET_PGAS_TRANSPORT_UCX_TRANSPORT_H

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pgas/transport/carrier.h"
#include "pgas/transport/listener_table.h"
#include "pgas/transport/transport.h"
#include "pgas/transport/ucx_memory.h"
#include "pgas/transport/ucx_operation.h"
#include "pgas/transport/ucx_staging.h"
#include "pgas/transport/ucx_wire.h"
#include "pgas/transport/ucx_worker.h"

/// How the UCX transport works.
///
/// Requests. Most are active messages to the target's service worker, executed there by its CPU:
/// bounds are checked by the owner of the memory, a word arrives by a single store, and messages of
/// an endpoint are handled in the order they were sent, because each fits in one fragment. Longer
/// transfers are several messages. Only where UCX can reach a segment without the target's CPU
/// (an RDMA network) are gets, and puts longer than a message, UCP's own; a put_signal of that
/// length is then a put, a flush of the endpoint, and the signal as a message from the flush's
/// callback, while other requests pass it.
///
/// Order. Every request has a sequence number. A lane (the state of one peer) knows up to which
/// number its messages are acknowledged and its puts flushed; acknowledgements are asked for by
/// quiet, and by the first request behind a fence whose kind is not ordered by itself. fence only
/// remembers the current number: messages follow messages for free.
///
/// Ownership. The worker, the lanes and the operations belong to whoever holds the token (Turn),
/// for posting and for progress. Nobody sleeps, waits or calls the transport's owner while holding
/// it; UCX's callbacks run under it.
///
/// Wake-up rule for the helper thread: `progress(); if (arm()) poll(event_fd());`, again and again.
/// The worker's descriptor stays readable from the first event after arm() to the next arm(),
/// whoever handles the event, so callers that progress the worker can't swallow a wake-up. While
/// callers are active arm() takes a short nap instead of arming the worker: peers then don't pay
/// for waking a thread that finds nothing to do. A caller that leaves requests which only progress
/// can move wakes the sleeping helper. After an event the helper looks again a few times
/// although nothing calls it, see Worker::event_fd().
///
/// Proxies. What they post (ucx_carrier.cc) is messages too, so a lane's order is that of its
/// endpoint. fence and quiet are not about it: it has a list of its own.
///
/// Memory that no transport may touch goes through bounce memory of its owner, see StagingService.
/// A source (ucx_stage.cc) uses a piece for at most 256 KiB of a request, sends it as messages, and
/// learns with the next grant how many of its pieces are over. A strong signal takes a piece too
/// while others are not over, so it is raised behind them; a drain waits until they are.
///
/// Failure. Endpoints use UCP's peer error handling: a connection that breaks, or a peer that the
/// transport's owner reports dead, fails the lane and ends everything open on it.
namespace gimlet::pgas::ucx {

/// kAsMessages treats every peer as one that UCX reaches through its CPU, kNative none: tests run
/// both over any network.
enum class BulkPath : std::uint8_t { kDetect, kAsMessages, kNative };

/// A condition that is looked at again and again; refers to a callable that outlives the call.
class Condition {
 public:
  template <class Callable>
  Condition(const Callable& callable)
      : callable_(&callable),
        call_([](const void* c) { return (*static_cast<const Callable*>(c))(); }) {}
  bool operator()() const { return call_(callable_); }

 private:
  const void* callable_;
  bool (*call_)(const void*);
};

class UcxTransport final : public Transport, public Carrier, private StagingService::Answers {
 public:
  explicit UcxTransport(const TransportOwner& owner, BulkPath bulk = BulkPath::kDetect);
  ~UcxTransport() override;
  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  Status open(std::vector<std::byte>& blob);

  const char* name() const override { return "ucx"; }
  Status put(const RemoteAddress& dest, const void* source, std::size_t bytes) override;
  Status put_nbi(const RemoteAddress& dest, const void* source, std::size_t bytes) override;
  Status get(void* dest, const RemoteAddress& source, std::size_t bytes) override;
  Status get_nbi(void* dest, const RemoteAddress& source, std::size_t bytes) override;
  Status amo(AmoOp op, unsigned width, const RemoteAddress& word, std::uint64_t operand,
             std::uint64_t compare, void* fetched) override;
  Status amo_nbi(AmoOp op, unsigned width, const RemoteAddress& word, std::uint64_t operand,
                 std::uint64_t compare, void* fetched) override;
  Status put_signal(const RemoteAddress& dest, const void* source, std::size_t bytes,
                    const RemoteAddress& signal, std::uint64_t value, SignalOp op) override;
  Status put_signal_nbi(const RemoteAddress& dest, const void* source, std::size_t bytes,
                        const RemoteAddress& signal, std::uint64_t value, SignalOp op) override;
  Status fence() override;
  Status quiet() override;
  void quiet_carried() override;
  bool progress() override;
  int event_fd() const override { return worker_.event_fd(); }
  bool arm() override;
  Carrier& carrier() override { return *this; }

  Status add_segment(std::byte* base, std::size_t size, SegmentNumber& number) override;
  Status add_staged_segment(std::byte* base, std::size_t size, const device::MemoryKind& kind,
                            SegmentNumber& number) override;
  void remove_segment(SegmentNumber number) override;
  Status add_listener(Listener listener, ListenerNumber& number) override;
  void remove_listener(ListenerNumber number) override;
  bool post(CarriedRequest& request) override;
  bool post_note(int rank, ListenerNumber listener, std::span<const std::byte> note) override;
  std::uint64_t confirmations() const override {
    return confirmations_.load(std::memory_order_relaxed);
  }

  int endpoints() const override { return endpoints_.load(std::memory_order_relaxed); }

  /// Messages that nobody of this job should have sent: cut, of an unknown kind, or from no PE.
  std::uint64_t strangers() const { return strangers_.load(std::memory_order_relaxed); }

 private:
  class Turn;
  enum class Class : std::uint8_t { kMessage, kPut, kGet };

  // ucx_transport.cc, without the token.
  Status issue(Lane& lane, Class what, bool wait, Operation*& op, Condition post);
  Status wait_on(Lane& lane, Condition done);
  Status look_around(Lane& lane, std::uint64_t waited_ns);
  void leave();
  // ucx_transport.cc, under the token.
  bool room(const Lane& lane) const;
  bool in_order(const Lane& lane, Class what) const;
  bool done_to(const Lane& lane, std::uint64_t sequence) const;
  bool clean(const Lane& lane) const;
  void push(Lane& lane, std::uint64_t sequence);
  Lane* first_not_done(std::uint64_t sequence, Status& failed);
  void defer(Status error);

  // ucx_lanes.cc, without the token.
  Status reach(int pe, Lane*& lane);
  Status connect(Lane& lane);
  void open_endpoint(Lane& lane, std::span<const std::byte> blob);
  Status try_open(Lane& lane, std::span<const std::byte> blob);
  // ucx_lanes.cc, under the token.
  Lane* make_lane(int pe);
  static void on_endpoint_error(void* lane, ucp_ep_h endpoint, ucs_status_t status);
  void fail_lane(Lane& lane, std::string why);
  void lose(Operation& op);
  void bury(int dead);
  void close_failed();
  void close_endpoint(Lane& lane);

  // ucx_requests.cc, without the token.
  Status start_put(const RemoteAddress& dest, const void* source, std::size_t bytes, bool wait);
  Status start_get(void* dest, const RemoteAddress& source, std::size_t bytes, bool wait);
  Status start_amo(AmoOp op, unsigned width, const RemoteAddress& word, std::uint64_t operand,
                   std::uint64_t compare, void* fetched, bool wait);
  Status start_put_signal(const RemoteAddress& dest, const void* source, std::size_t bytes,
                          const RemoteAddress& signal, std::uint64_t value, SignalOp op, bool wait);
  Status send_whole(Lane& lane, const MessageHeader& last, const void* source, std::size_t bytes,
                    bool wait);
  Status read_whole(Lane& lane, void* dest, const RemoteAddress& source, std::size_t bytes,
                    bool wait);
  Status put_native(Lane& lane, const Lane::Remote& remote, const RemoteAddress& dest,
                    const void* source, std::size_t bytes, const MessageHeader* signal, bool wait);
  // ucx_requests.cc, under the token.
  Operation& begin(OperationKind kind, Lane& lane, bool awaited, CarriedRequest* carried = nullptr);
  void finish(Operation& op);
  void recycle_if_unused(Operation& op);
  void send(Operation& op, ucp_ep_h endpoint, const void* payload, std::size_t bytes, bool reply);
  void flush(Operation& op);
  void ask_done(Lane& lane);
  void adopt(Operation& op, ucs_status_ptr_t request);
  static void on_completed(void* request, ucs_status_t status, void* operation);
  void completed(Operation& op, ucs_status_t status);
  void advance(Operation& put_signal);

  // ucx_carrier.cc, without the token.
  Lane* try_reach(int rank, Status& failed);
  void carry_to_self(CarriedRequest& request);
  // ucx_carrier.cc, under the token.
  bool greet(Lane& lane);
  bool carry(Lane& lane, CarriedRequest& request);
  bool carry_put(Lane& lane, CarriedRequest& request);
  bool carry_get(Lane& lane, CarriedRequest& request);
  bool carry_amo(Lane& lane, CarriedRequest& request);
  bool carry_drain(Lane& lane, CarriedRequest& request);
  Operation& begin_part(OperationKind kind, Lane& lane, CarriedRequest& request);
  void end_part(CarriedRequest& request, Status status);
  void posted(CarriedRequest& request, Status status = {});
  bool carried_all(CarriedRequest& request, bool over);
  void tell_refused(ListenerNumber number, const Refusal& refusal);
  void tell_refused(CarriedRequest& request, std::uint64_t size);
  bool take_note(const MessageHeader& header, const std::byte* data, std::size_t length);
  bool take_refused(const MessageHeader& header);

  // ucx_stage.cc, under the token: the source's end of staging.
  bool needs_piece(const Lane& lane, CarriedRequest& request) const;
  bool take_piece(Lane& lane, const CarriedRequest& request);
  bool carry_staged_put(Lane& lane, CarriedRequest& request);
  void send_rest(Lane& lane, CarriedRequest& request);
  bool is_unknown(Lane& lane, CarriedRequest& request);
  bool take_news(const MessageHeader& header);
  void finish_drains(Lane& lane);
  // ucx_stage.cc, under the token: answers of the target's end.
  bool serve_staged(const MessageHeader& header, const std::byte* data, std::size_t length,
                    ucp_ep_h reply_to);
  ucp_ep_h way_to(int source);
  bool send_news(int source, std::uint32_t granted, std::uint64_t over) override;
  bool send_piece(int source, BouncePiece& piece) override;
  void send_refusal(const MessageHeader& request, std::uint64_t bytes) override;
  bool pump_staging();
  bool update_staged(const MessageHeader& header, std::uint64_t& old);

  // ucx_serve.cc, under the token, from UCX's progress.
  static ucs_status_t on_message(void* self, const void* header, size_t header_length, void* data,
                                 size_t length, const ucp_am_recv_param_t* param);
  bool serve(const MessageHeader& header, const std::byte* data, std::size_t length,
             ucp_ep_h reply_to);
  bool find_places(const MessageHeader& header, ucp_ep_h reply_to, std::byte*& place,
                   std::byte*& word);
  void serve_put(const MessageHeader& header, const std::byte* data, ucp_ep_h reply_to);
  void serve_update(const MessageHeader& header, ucp_ep_h reply_to);
  void serve_read(const MessageHeader& header, ucp_ep_h reply_to);
  void serve_ask_done(const MessageHeader& header, ucp_ep_h reply_to);
  void refuse(const MessageHeader& header, std::uint64_t bytes, ucp_ep_h reply_to);
  void reply(ucp_ep_h to, const MessageHeader& header, const std::byte* payload, std::size_t bytes);
  void reply_refused(ucp_ep_h to, const MessageHeader& request);
  bool take_value(const MessageHeader& header);
  bool take_data(const MessageHeader& header, const std::byte* data, std::size_t length);
  bool take_done(const MessageHeader& header);
  Operation* asked(const MessageHeader& answer);

  TransportOwner owner_;
  const BulkPath bulk_;
  ServedMemory memory_;

  // Everything below belongs to the holder of the token, except the atomics.
  std::atomic<bool> token_{false};
  std::unique_ptr<std::atomic<Lane*>[], decltype(&std::free)> lanes_;
  std::vector<std::unique_ptr<Lane>> made_lanes_;
  std::vector<Lane*> dirty_;
  std::vector<Lane*> failed_;  // with an endpoint that is still to be closed
  OperationPool operations_;
  ListenerTable listeners_;
  std::map<int, MessageHeader> refusals_;  // by source: the first since it asked
  Status deferred_;                        // of a request that nobody waited for
  std::uint64_t sequence_ = 0;
  std::uint64_t fence_ = 0;
  std::uint32_t requests_ = 0;  // UCX requests in flight
  std::atomic<std::uint32_t> unsent_{0};
  std::atomic<std::uint64_t> confirmations_{0};
  std::atomic<std::uint64_t> strangers_{0};
  std::atomic<int> endpoints_{0};

  std::unique_ptr<StagingService> staging_;  // null: nothing staged was ever offered here
  int served_ = -1;                          // the source of the message that is being served
  ucp_ep_h served_way_ = nullptr;            // and how to answer it
  std::atomic<int> unreached_{-1};           // a source that is to be answered and has no lane yet

  std::atomic<std::uint64_t> caller_turns_{0};
  std::atomic<pthread_t> helper_{};
  std::atomic<bool> helper_asleep_{false};
  std::uint64_t seen_turns_ = 0;  // helper only
  unsigned busy_looks_ = 0;       // helper only

  Worker worker_;  // destroyed first: UCX may still complete operations
};

/// The token, held for a scope. Test it unless it was waited for.
class UcxTransport::Turn {
 public:
  enum class Patience : unsigned char { kTry, kWait };
  explicit Turn(UcxTransport& transport, Patience patience);
  // Release: the next holder's acquire exchange sees all that this one did.
  ~Turn() {
    if (held_) transport_.token_.store(false, std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return held_; }

 private:
  bool try_take() {
    return !transport_.token_.load(std::memory_order_relaxed) &&
           !transport_.token_.exchange(true, std::memory_order_acquire);
  }

  UcxTransport& transport_;
  bool held_;
};

/// Of the next part of a request. An offset past the end of everything stays there.
MessageHeader header_of(MessageKind kind, const CarriedRequest& request, std::uint32_t bytes);

/// "PE 3 refused ...": one sentence for every request that leaves the target's memory.
Status refused(int pe, MessageKind kind, std::uint64_t bytes, unsigned segment,
               std::uint64_t offset, std::uint64_t size);

}  // namespace gimlet::pgas::ucx

#endif
