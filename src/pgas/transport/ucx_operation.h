// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_UCX_OPERATION_H
#define GIMLET_PGAS_TRANSPORT_UCX_OPERATION_H

#include <ucp/api/ucp.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "device/status.h"
#include "pgas/transport/carrier.h"
#include "pgas/transport/ucx_wire.h"

namespace gimlet::pgas::ucx {

class UcxTransport;
struct BouncePiece;
struct Lane;

/// A long read is asked for in pieces, and at most this many at a time, so that the replies which a
/// target has to hold stay few.
inline constexpr std::uint32_t kReadPiece = 64 << 10;
inline constexpr std::uint32_t kMaxReads = 64;

enum class OperationKind : std::uint8_t {
  kMessage,    // an active message, over when its source may be reused
  kFetch,      // an active message whose answer is one value
  kRead,       // an active message whose answer is data
  kPut,        // UCP's put
  kGet,        // UCP's get
  kFlush,      // UCP's flush of the endpoint
  kPutSignal,  // UCP's put, then a flush, then the signal as a message
  kTransfer,   // the whole of several messages or reads
  kDrain,      // over when the lane's messages before it are acknowledged
  kStageData,  // an active message from bounce memory: an answer
};

/// A request in flight, from a pool. It is recycled when it is finished, no UCX request refers to
/// it, no part of it is open and nobody waits for it.
struct Operation {
  enum class Stage : std::uint8_t { kPut, kFlush, kSignal, kAcknowledge };

  Operation* before = nullptr;  // in one of its lane's lists, in order of sequence
  Operation* after = nullptr;
  UcxTransport* transport = nullptr;
  Lane* lane = nullptr;  // null: a reply
  Operation* whole = nullptr;
  CarriedRequest* carried = nullptr;  // what this is, or is a part of
  BouncePiece* piece = nullptr;       // kStageData
  std::uint64_t sequence = 0;
  std::uint64_t flush_sequence = 0;   // kFlush, kPutSignal: what the flush covers
  std::uint64_t staged_to = 0;        // kDrain: pieces that must be over
  std::uint64_t signal_sequence = 0;  // kPutSignal: number of the signal's message, 0 before
  std::byte* result = nullptr;        // kFetch, kRead; null when nobody wants it any more
  std::uint32_t bytes = 0;            // kFetch, kRead: of the result
  std::uint32_t missing = 0;          // kRead: bytes that have not arrived
  std::uint32_t parts = 0;            // kTransfer: open parts
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  std::uint16_t requests = 0;  // UCX requests that refer to this operation
  OperationKind kind = OperationKind::kMessage;
  Stage stage = Stage::kPut;  // kPutSignal
  bool posted = true;         // kTransfer: all parts are posted
  bool unsent = false;        // its UCX request moves only by progress
  bool linked = false;
  bool finished = false;
  bool awaited = false;
  bool source_free = true;  // kPutSignal: the payload has left
  MessageHeader header{};   // stays in place while UCX sends it, like the next
  ucp_dt_iov_t payload{};
  std::byte note[Carrier::kNoteBytes]{};
  std::vector<std::byte> copy;  // of a reply's payload
  Status error;

  /// Names this use of the operation: an answer to an earlier use finds nobody.
  std::uint64_t ticket() const { return std::uint64_t{generation} << 32 | index; }
};

class OperationPool {
 public:
  explicit OperationPool(UcxTransport& transport) : transport_(transport) {}

  Operation& take(OperationKind kind, Lane* lane, bool awaited);
  void give_back(Operation& op);
  Operation* find(std::uint64_t ticket);

 private:
  UcxTransport& transport_;
  std::deque<Operation> all_;
  std::vector<Operation*> unused_;
};

/// What this PE knows of one peer. Made at first contact.
struct Lane {
  enum class State : std::uint8_t { kCold, kResolving, kReady, kFailed };
  struct Remote {
    std::uint64_t base;
    std::uint64_t size;
    ucp_rkey_h key;
    bool native;  // UCX reaches it without the target's CPU
  };

  Lane(UcxTransport& owner, int peer) : transport(owner), pe(peer) {
    open.before = open.after = &open;
    carried.before = carried.after = &carried;
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void link(Operation& op);
  void unlink(Operation& op);
  bool nothing_open() const { return open.after == &open; }

  UcxTransport& transport;
  const int pe;
  std::atomic<State> state{State::kCold};
  bool heard = false;       // the peer has answered once
  bool owes_quiet = false;  // a proxy has posted since quiet_carried()
  bool dirty = false;       // in the list that quiet walks
  ucp_ep_h endpoint = nullptr;
  std::vector<Remote> remote;
  std::uint32_t requests = 0;    // UCX requests in flight
  std::uint32_t operations = 0;  // open ones, carried ones too
  std::uint32_t reads = 0;       // of them of kind kRead
  // Heads of lists, oldest first: what fence and quiet are about, and what proxies posted.
  Operation open;
  Operation carried;
  std::uint32_t put_signals = 0;  // in `open`, of kind kPutSignal
  std::uint32_t drains = 0;       // in `carried`, of kind kDrain
  std::uint64_t tried_ns = 0;     // when carried requests last tried to connect it, and first
  std::uint64_t wanted_ns = 0;
  // Sequence numbers: the last message that wants an acknowledgement, up to where one was asked
  // for, up to where it came; the same for UCP's puts and flushes.
  std::uint64_t last_message = 0;
  std::uint64_t asked_to = 0;
  std::uint64_t acknowledged_to = 0;
  std::uint64_t last_put = 0;
  std::uint64_t flushing_to = 0;
  std::uint64_t flushed_to = 0;
  // Bounce memory of the peer: pieces asked for, granted and not used; pieces ever used, and over.
  struct {
    std::uint32_t asked = 0;
    std::uint32_t granted = 0;
    std::uint64_t used = 0;
    std::uint64_t over = 0;
    bool refused = false;  // it has no such memory at all
  } staged;
  std::string why_failed;

  bool is(State wanted) const { return state.load(std::memory_order_relaxed) == wanted; }
};

}  // namespace gimlet::pgas::ucx

#endif
