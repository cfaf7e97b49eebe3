// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_CARRIER_H
#define GIMLET_PGAS_TRANSPORT_CARRIER_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "device/memory_kind.h"
#include "device/status.h"
#include "pgas/transport/transport.h"

namespace gimlet::pgas {

/// Number of a piece of memory that its owner offers; other ranks name it by that number.
using SegmentNumber = std::uint16_t;
/// Segments from this number on are staged: no transport may touch them, and every rank sees it by
/// the number.
inline constexpr SegmentNumber kFirstStaged = 0x8000;
inline constexpr bool is_staged(SegmentNumber number) {
  return number >= kFirstStaged;
}
/// Number of a listener of a rank.
using ListenerNumber = std::uint32_t;

/// A word that is raised at the target behind a put, or alone.
struct CarriedSignal {
  bool present = false;
  /// Behind every earlier put of the same lane, not only behind its own payload.
  bool strong = false;
  SegmentNumber segment = 0;
  SignalOp op = SignalOp::kAdd;
  std::uint64_t offset = 0;
  std::uint64_t value = 0;
};

/// One request that is posted and forgotten until it completes. Its poster owns it, and leaves it
/// and the memory it names alone until `completed` is called.
struct CarriedRequest {
  enum class Kind : std::uint8_t {
    kPut,    // complete when the source may be reused
    kGet,    // complete when the bytes are here
    kAmo,    // complete when the old value is here, or may be forgotten
    kDrain,  // complete when everything of its lane before it is visible at the target
  };

  Kind kind = Kind::kPut;
  AmoOp op = AmoOp::kFetch;
  std::uint8_t width = 8;  // of the word of an AMO: 4 or 8
  SegmentNumber segment = 0;
  int rank = 0;            // the target
  std::uint32_t lane = 0;  // the poster's own number
  std::uint64_t offset = 0;
  void* local = nullptr;  // source of a put, destination of a get or of an old value; null: none
  /// Of `local`, when only copies of that kind may touch it: for a StagingCarrier. Null: everybody.
  const device::MemoryKind* local_kind = nullptr;
  std::uint64_t bytes = 0;  // 0: a put does nothing but its signal, a get nothing
  /// Of a put that is a part of a longer one: what comes behind it. The target checks all of it,
  /// and the signal is that of the last part.
  std::uint64_t following = 0;
  CarriedSignal signal{};  // of a put
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
  ListenerNumber listener = 0;  // of the poster: hears what the target refuses
  /// Called once, by whichever thread moves the carrier, perhaps inside post(). Must not call the
  /// carrier. The request may be gone when it returns.
  void (*completed)(CarriedRequest& request, Status status) = nullptr;
  // The carrier's own.
  std::uint64_t posted_bytes = 0;
  std::uint32_t open_parts = 0;
  bool is_posted = false;
  std::uint64_t after_pieces = 0;  // so many pieces of bounce memory of its target come first
  bool awaits_piece = false;       // has asked for bounce memory of its target
  bool is_refused = false;         // said by a carrier when it completes a get: nothing was brought
  Status failure{};
};

/// A request that its target did not carry out.
struct Refusal {
  int rank = -1;  // the target
  CarriedRequest::Kind kind = CarriedRequest::Kind::kPut;
  bool is_signal = false;  // the signal of a put
  SegmentNumber segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t size = 0;  // of the segment; 0: there is none
};

/// What a proxy thread needs of a transport: it serves many device threads, so it never waits for
/// one peer. A lane is the requests of one poster to one rank with the same number of a lane.
///
/// Order. Between two puts, and between a put and the weak signal of another, nothing is promised
/// on arrival. A signal is raised after its own payload is visible at the target; a strong one also
/// after that of all puts that were posted to its lane before. No request waits for earlier ones
/// because of a signal.
///
/// Failure. Places are checked by their owner; a request that it refuses changes nothing there, and
/// the poster's listener is told, perhaps after the completion, and of a long request more than
/// once. A lost peer completes its requests with an error. After remove_listener() and
/// remove_segment() have returned, nobody calls the one or touches the other. A number is not given
/// out again while messages for its last owner may be under way.
///
/// Memory that transports may not touch (MemoryKind::is_open_to_transports) can be offered too. Its
/// owner's side moves it through bounce memory, by copies of its kind, and all of the above holds:
/// a payload is visible, and bytes are here, when the copy is over. See staged_segments.h and
/// staging_carrier.h.
///
/// All calls are safe from any thread that holds no lock which `completed` or a listener takes.
class Carrier {
 public:
  virtual ~Carrier() = default;

  /// Offers [base, base + size) to the other ranks.
  virtual Status add_segment(std::byte* base, std::size_t size, SegmentNumber& number) = 0;
  /// The same for memory of a kind that is not open to transports. After the first one this rank
  /// has bounce memory for what comes in.
  virtual Status add_staged_segment(std::byte* base, std::size_t size,
                                    const device::MemoryKind& kind, SegmentNumber& number) = 0;
  virtual void remove_segment(SegmentNumber number) = 0;

  /// Called by whichever thread moves the carrier, which may hold what all others wait for: must
  /// not call the carrier, block, or write to a file.
  struct Listener {
    std::function<void(const Refusal& refusal)> refused;
    std::function<void(int rank, std::span<const std::byte> note)> noted;
  };
  virtual Status add_listener(Listener listener, ListenerNumber& number) = 0;
  virtual void remove_listener(ListenerNumber number) = 0;

  /// False: there is no room, or the peer is not connected yet. Call again later, with the same
  /// request before any other one of its lane.
  virtual bool post(CarriedRequest& request) = 0;
  /// A few bytes for a listener of another rank. False: not now.
  static constexpr std::size_t kNoteBytes = 32;
  virtual bool post_note(int rank, ListenerNumber listener, std::span<const std::byte> note) = 0;

  /// Serves peers and own requests once, if nobody else does so right now. True when something
  /// moved.
  virtual bool progress() = 0;

  /// How often it has asked a peer, or itself, whether all before was complete: a drain, a flush.
  virtual std::uint64_t confirmations() const { return 0; }
};

}  // namespace gimlet::pgas

#endif
