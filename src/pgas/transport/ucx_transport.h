// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_UCX_TRANSPORT_H
#define GIMLET_PGAS_TRANSPORT_UCX_TRANSPORT_H

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/backoff.h"
#include "pgas/transport/transport.h"
#include "pgas/transport/ucx_memory.h"
#include "pgas/transport/ucx_wire.h"
#include "pgas/transport/ucx_worker.h"

/// How the UCX transport works.
///
/// Requests. Puts up to one active message, updates, and signals with small payloads are messages
/// to the target's service worker, executed there by its CPU: bounds are checked by their owner, a
/// word arrives by a single store, and messages of one endpoint are handled in the order they were
/// sent. Larger puts and gets are UCP's own RMA. A large put_signal is a put, a flush of the
/// endpoint, and the signal as a message from the flush's callback; other requests pass it.
///
/// Order. Every request has a sequence number. A lane (the state of one peer) knows up to which
/// number its RMA is flushed and its messages are acknowledged; acknowledgements are asked for only
/// by quiet and by a fence that needs them. fence only remembers the current number: messages after
/// messages are ordered by themselves, so a lane without RMA pays nothing; the first request behind
/// a fence waits for what its kind does not order.
///
/// Ownership. The worker, the lanes and the operations belong to whoever holds the token (Turn),
/// for posting and progress alike. Nobody sleeps, waits or calls its owner while holding it;
/// UCX's callbacks run under it.
///
/// Wake-up rule for the helper thread: `progress(); if (arm()) poll(event_fd());`, again and again.
/// The worker's descriptor stays readable from the first event after arm() until the next arm(),
/// whoever consumes the event, so callers that progress the worker cannot swallow a wake-up. While
/// callers are active arm() takes a short nap instead of arming the worker: peers then don't pay
/// for waking a thread that has nothing to do. A caller that leaves requests behind which need
/// further progress wakes the sleeping helper.
namespace gimlet::pgas::ucx {

struct Lane;
class UcxTransport;

enum class OperationKind : std::uint8_t { kMessage, kPut, kGet, kFetch, kSignalled, kFlush };

/// A request in flight, from a pool. It is recycled when it is finished, no UCX request refers to
/// it and nobody waits for it.
struct Operation {
  Operation* before = nullptr;  // in the lane's list of open operations
  Operation* after = nullptr;
  Lane* lane = nullptr;  // null: a reply
  std::uint64_t sequence = 0;
  std::uint64_t flush_sequence = 0;   // kFlush, kSignalled: what the flush covers
  std::uint64_t signal_sequence = 0;  // kSignalled: number of the signal's message, 0 before
  void* result = nullptr;             // kFetch
  UcxTransport* transport = nullptr;
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  std::uint16_t requests = 0;  // UCX requests that refer to this operation
  OperationKind kind = OperationKind::kMessage;
  enum class Stage : std::uint8_t { kPut, kFlush, kSignal, kAcknowledge };
  Stage stage = Stage::kPut;  // kSignalled
  bool unsent = false;        // its UCX request is counted in unsent_
  bool linked = false;
  bool finished = false;
  bool detached = true;     // nobody waits for it
  bool source_free = true;  // kSignalled: the payload has left
  MessageHeader header{};   // stays in place while UCX sends it
  Status error;

  std::uint64_t ticket() const { return std::uint64_t{generation} << 32 | index; }
};

/// What this PE knows of one peer. Made at first contact.
struct Lane {
  enum class State : std::uint8_t { kCold, kResolving, kReady, kFailed };
  struct Remote {
    std::uint64_t base;
    std::uint64_t size;
    ucp_rkey_h key;
  };

  explicit Lane(int peer) : pe(peer) { open.before = open.after = &open; }

  const int pe;
  std::atomic<State> state{State::kCold};
  bool heard = false;  // the peer has answered once
  bool dirty = false;  // in the list that quiet walks
  ucp_ep_h endpoint = nullptr;
  std::vector<Remote> remote;
  Operation open;               // list head, oldest first
  std::uint32_t signalled = 0;  // open operations of kind kSignalled
  std::uint64_t last_message = 0, asked_to = 0, acked_to = 0;
  std::uint64_t last_rma = 0, flushing_to = 0, flushed_to = 0;
  std::string why_failed;
};

class UcxTransport final : public Transport {
 public:
  explicit UcxTransport(const TransportOwner& owner);
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
  bool progress() override;
  int event_fd() const override { return worker_.event_fd(); }
  bool arm() override;
  int endpoints() const override { return endpoints_.load(std::memory_order_relaxed); }

  /// Messages that nobody of this job should have sent: short, of an unknown kind, or from no PE.
  std::uint64_t strangers() const { return strangers_.load(std::memory_order_relaxed); }

 private:
  class Turn;
  struct Refusals {
    MessageHeader first;
    std::uint64_t count;
  };

  // Calls (no token held).
  Status reach(int pe, Lane*& lane);
  Status connect(Lane& lane);
  Status open_endpoint(Lane& lane, std::span<const std::byte> blob);
  Status resolve(const Lane& lane, MessageKind kind, const RemoteAddress& place, std::size_t bytes,
                 ucp_rkey_h& key, std::uint64_t& address) const;
  Status start_put(const RemoteAddress& dest, const void* source, std::size_t bytes, bool wait);
  Status start_get(void* dest, const RemoteAddress& source, std::size_t bytes, bool wait);
  Status start_amo(AmoOp op, unsigned width, const RemoteAddress& word, std::uint64_t operand,
                   std::uint64_t compare, void* fetched, bool wait);
  Status start_signal(const RemoteAddress& dest, const void* source, std::size_t bytes,
                      const RemoteAddress& signal, std::uint64_t value, SignalOp op, bool wait);
  Status local_put(const RemoteAddress& dest, const void* source, std::size_t bytes);
  template <class InOrder, class Post>
  Status issue(Lane& lane, bool wait, InOrder&& in_order, Post&& post);
  template <class Done>
  Status wait_on(Lane& lane, Done&& done);
  Status look_around(Lane& lane, std::uint64_t waited_ns);
  void leave();

  // Under the token.
  Operation& take(OperationKind kind, Lane* lane, bool awaited = false);
  void link(Operation& op);
  void finish(Operation& op);
  void recycle_if_unused(Operation& op);
  void abandon(Operation& op);
  bool room() const { return requests_ < kMaxRequests && live_ < kMaxLive; }
  void mark_dirty(Lane& lane);
  bool message_in_order(const Lane& lane) const;
  bool rma_in_order(const Lane& lane) const;
  bool done_to(const Lane& lane, std::uint64_t sequence) const;
  bool clean(const Lane& lane) const;
  void push(Lane& lane, std::uint64_t sequence);
  Lane* first_not_done(std::uint64_t sequence, Status& failed);
  Operation& post_message(Lane& lane, const MessageHeader& header, const void* payload,
                          std::size_t bytes, bool awaited);
  void send(Operation& op, ucp_ep_h endpoint, const void* payload, std::size_t bytes, bool reply);
  void adopt(Operation& op, ucs_status_ptr_t request, bool unsent);
  void completed(Operation& op, ucs_status_t status);
  void advance_signalled(Operation& op);
  void post_flush(Operation& op);
  void ask_done(Lane& lane);
  void defer(Status error);
  void fail_lane(Lane& lane, std::string why);
  void close_endpoint(Lane& lane);

  // Served requests (under the token, from UCX's progress).
  static ucs_status_t on_message(void* self, const void* header, size_t header_length, void* data,
                                 size_t length, const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* operation);
  static void on_endpoint_error(void* lane, ucp_ep_h endpoint, ucs_status_t status);
  bool serve(const MessageHeader& header, const std::byte* data, std::size_t length,
             ucp_ep_h reply_to);
  void serve_put(const MessageHeader& header, const std::byte* data);
  void serve_update(const MessageHeader& header, ucp_ep_h reply_to);
  void serve_put_signal(const MessageHeader& header, const std::byte* data);
  void serve_ask_done(const MessageHeader& header, ucp_ep_h reply_to);
  void refuse(const MessageHeader& header);
  void reply(ucp_ep_h to, const MessageHeader& header);
  bool take_value(const MessageHeader& header);
  bool take_done(const MessageHeader& header);

  static constexpr std::uint32_t kMaxRequests = 1024;
  static constexpr std::uint32_t kMaxLive = 8192;

  TransportOwner owner_;
  ServedMemory memory_;
  // Everything below belongs to the holder of the token, except the atomics.
  std::atomic<bool> token_{false};
  std::unique_ptr<std::atomic<Lane*>[], decltype(&std::free)> lanes_;
  std::vector<std::unique_ptr<Lane>> made_lanes_;
  std::deque<Operation> operations_;
  std::vector<Operation*> unused_;
  std::uint32_t live_ = 0;
  std::vector<Lane*> dirty_;
  std::map<int, Refusals> refusals_;
  Status deferred_;
  std::uint64_t sequence_ = 0;
  std::uint64_t fence_ = 0;
  std::uint32_t requests_ = 0;            // UCX requests in flight
  std::atomic<std::uint32_t> unsent_{0};  // of those, the ones that only progress completes
  std::atomic<std::uint64_t> strangers_{0};
  std::atomic<int> endpoints_{0};
  std::atomic<std::uint64_t> caller_turns_{0};
  std::atomic<pthread_t> helper_{};
  std::atomic<bool> helper_asleep_{false};
  std::uint64_t seen_turns_ = 0;  // helper only
  unsigned busy_looks_ = 0;       // helper only
  Worker worker_;
};

}  // namespace gimlet::pgas::ucx

#endif
