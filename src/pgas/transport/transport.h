// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_TRANSPORT_H
#define GIMLET_PGAS_TRANSPORT_TRANSPORT_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device/status.h"

namespace gimlet::pgas {

/// Updates of one word. Operands travel as bits: a float swap is a swap of its 32 bits.
enum class AmoOp : std::uint8_t { kFetch, kSet, kSwap, kCompareSwap, kAdd, kAnd, kOr, kXor };
enum class SignalOp : std::uint8_t { kSet, kAdd };

/// The update that a signal is.
constexpr AmoOp update_of(SignalOp op) {
  return op == SignalOp::kSet ? AmoOp::kSet : AmoOp::kAdd;
}

/// A place in a peer's symmetric memory, free of anybody's virtual addresses.
struct RemoteAddress {
  int pe;
  std::uint16_t segment;
  std::uint64_t offset;
};

/// A piece of this PE's symmetric memory that peers may address. The index in the list is the
/// segment number, the same on every PE.
struct LocalSegment {
  std::byte* base;
  std::size_t size;
};

/// One-sided operations towards peers that loads and stores don't reach.
///
/// Completion: put returns when the source may be reused, get and fetching updates when the value
/// is here; the _nbi forms keep source and destination in use until quiet. quiet returns when
/// everything issued before by this PE is done and visible at its target. fence orders what was
/// issued before it ahead of what is issued after it, per target. put_signal is one request: the
/// signal is updated after its own payload is visible, zero bytes included; it says nothing about
/// earlier puts. Updates of a word happen at the target by its CPU with lock-prefixed instructions,
/// so they exclude the direct transport's atomics on the same word. All calls are safe from any
/// thread and from fibers; a wait inside never holds a lock while it sleeps, and a dead or refusing
/// peer ends it with an error. Bounds are checked at the target.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;

  virtual Status put(const RemoteAddress& dest, const void* source, std::size_t bytes) = 0;
  virtual Status put_nbi(const RemoteAddress& dest, const void* source, std::size_t bytes) = 0;
  virtual Status get(void* dest, const RemoteAddress& source, std::size_t bytes) = 0;
  virtual Status get_nbi(void* dest, const RemoteAddress& source, std::size_t bytes) = 0;
  /// `width` is 4 or 8 bytes, the word is aligned to it. `fetched` (width bytes written) may be
  /// null for updates without result; such an update returns at once and completes at quiet.
  virtual Status amo(AmoOp op, unsigned width, const RemoteAddress& word, std::uint64_t operand,
                     std::uint64_t compare, void* fetched) = 0;
  /// Like amo, but `fetched` is written by quiet at the latest.
  virtual Status amo_nbi(AmoOp op, unsigned width, const RemoteAddress& word, std::uint64_t operand,
                         std::uint64_t compare, void* fetched) = 0;
  virtual Status put_signal(const RemoteAddress& dest, const void* source, std::size_t bytes,
                            const RemoteAddress& signal, std::uint64_t value, SignalOp op) = 0;
  virtual Status put_signal_nbi(const RemoteAddress& dest, const void* source, std::size_t bytes,
                                const RemoteAddress& signal, std::uint64_t value, SignalOp op) = 0;
  virtual Status fence() = 0;
  virtual Status quiet() = 0;
  /// The same for what proxies had carried and completed, which quiet is not about. Peers that fail
  /// are passed over.
  virtual void quiet_carried() = 0;

  /// Serves peers and own requests once, if nobody else does so right now. True when something
  /// moved.
  virtual bool progress() = 0;
  /// For the sleeping helper thread: a descriptor that becomes readable when there is work, and the
  /// call that must return true before each sleep on it (false: progress again first).
  virtual int event_fd() const = 0;
  virtual bool arm() = 0;

  /// The same transport for those who must not wait.
  virtual class Carrier& carrier() = 0;

  /// Endpoints made so far (tests count them).
  virtual int endpoints() const = 0;
};

/// What the transport asks of its owner. find_blob must not block: it returns the blob that the
/// peer's own local_blob() gave, or pending.
struct TransportOwner {
  enum class Lookup : unsigned char { kReady, kPending, kFailed };
  int rank = 0;
  int size = 1;
  std::span<const LocalSegment> segments;
  std::function<Lookup(int pe, std::vector<std::byte>& blob, Status& why)> find_blob;
  /// A rank known to have died, or -1: ends waits on it.
  std::function<int()> dead_peer;
  double connect_timeout = 60;
  /// Of bounce memory for what comes in to memory that no transport may touch.
  std::size_t bounce_bytes = std::size_t{4} << 20;
};

/// UCX. `blob` is what peers need to reach this PE: small, position independent bytes to publish.
Status make_ucx_transport(const TransportOwner& owner, std::unique_ptr<Transport>& out,
                          std::vector<std::byte>& blob);

}  // namespace gimlet::pgas

#endif
