// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_UCX_STAGING_H
#define GIMLET_PGAS_TRANSPORT_UCX_STAGING_H

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "pgas/transport/bounce_pool.h"
#include "pgas/transport/ucx_memory.h"
#include "pgas/transport/ucx_wire.h"

namespace gimlet::pgas::ucx {

/// A piece of this PE's bounce memory, while a source has it.
struct BouncePiece {
  std::byte* memory = nullptr;
  std::uint32_t filled = 0;
  std::uint32_t sends = 0;  // answers that UCX reads from it
  bool is_void = false;     // refused, or its source is gone: nothing is done with it
  MessageHeader header{};   // that closed it; `bytes` are those of the whole piece
  StagedCopy copy;
};

/// The target's end of staging: serves what other PEs do to memory here that no transport may
/// touch.
///
/// Credits. A piece of bounce memory belongs to nobody, or to one source from the grant until it is
/// free again. A source asks (kStageAsk) when it has a request at hand, is granted pieces in the
/// order in which sources asked, one at a time each, and uses them in the order of their grants;
/// so a message needs no number of a piece. A source without a grant sends nothing, which leaves
/// its request where it came from. What came without one is a stranger's.
///
/// Ownership. The source fills its oldest piece (kStageData) and closes it: kStagePart and
/// kStagePut are copied into a segment, kStageRead out of one. A piece that is closed goes through
/// the copy queue of its segment's kind, and is free when that copy is over, or for a read when UCX
/// has sent the answer. Serving needs nothing else: no request of this PE, no piece of its own
/// requests, no grant of another PE. So two PEs that stage to each other with one piece each always
/// move.
///
/// Order. The pieces of one source are over in the order in which they were closed, whatever their
/// lanes. A signal that closes a piece is raised when the copies of all pieces before it, and its
/// own, are over. What was sent as plain messages before is done by then too. Words are updated on
/// arrival, by the same thread. The count of pieces that are over comes back with the grants
/// (kStageNews): behind it, copies have landed.
///
/// Failure. Places are checked when a piece is closed, the whole rest of a request in each of its
/// parts; a refused piece changes nothing and counts as over. A copy that was started is finished
/// before its segment is removed. A lost source's pieces come back, closed ones after their copy;
/// their signals are dropped.
///
/// Everything happens under the transport's token; pump() makes it go on.
class StagingService {
 public:
  /// How sources are answered. False: there is no way to that PE just now.
  class Answers {
   public:
    virtual ~Answers() = default;
    virtual bool send_news(int source, std::uint32_t granted, std::uint64_t over) = 0;
    virtual bool send_piece(int source, BouncePiece& piece) = 0;
    virtual void send_refusal(const MessageHeader& request, std::uint64_t bytes) = 0;
  };

  static Status make(std::size_t bytes, ServedMemory& memory, Answers& answers,
                     std::unique_ptr<StagingService>& out);

  /// Messages of a source. False: none of ours.
  bool ask(const MessageHeader& header);
  bool fill(const MessageHeader& header, const std::byte* data, std::size_t length);
  bool close(const MessageHeader& header, const std::byte* data, std::size_t length);

  /// UCX has sent one of the answers from a piece.
  void sent(BouncePiece& piece);
  /// The source is gone.
  void forget(int source);

  /// Is there something that pump() could move?
  bool is_busy() const {
    return closed_ != 0 || untold_ != 0 || (can_grant() && !waiting_.empty());
  }
  /// Goes on where copies are over or pieces are free. True when something moved.
  bool pump();

 private:
  struct Guest {
    explicit Guest(int pe) : source(pe) {}
    const int source;
    std::deque<BouncePiece*> granted;  // oldest first; the first one is being filled
    std::deque<BouncePiece*> closed;
    std::uint32_t asked = 0;    // and not granted
    std::uint32_t ungiven = 0;  // granted and not told
    std::uint64_t over = 0;
    bool has_news = false;
    bool is_gone = false;
  };

  StagingService(ServedMemory& memory, Answers& answers) : memory_(memory), answers_(answers) {}

  bool can_grant() const { return pool_->has_free(); }
  Guest* find(int source);
  bool append(Guest& guest, const std::byte* data, std::size_t length);
  bool start(BouncePiece& piece);
  bool is_place(const MessageHeader& header) const;
  void raise(const MessageHeader& header);
  bool advance(Guest& guest);
  bool settle(Guest& guest, BouncePiece& piece);
  void grant();
  bool tell(Guest& guest);
  void note_news(Guest& guest);
  void free(BouncePiece& piece);

  ServedMemory& memory_;
  Answers& answers_;
  std::unique_ptr<BouncePool> pool_;
  std::vector<std::unique_ptr<BouncePiece>> pieces_;
  std::vector<BouncePiece*> unused_;
  std::map<int, Guest> guests_;  // PEs that ever asked
  std::deque<Guest*> waiting_;   // those that asked for more than they have, in their order
  std::size_t closed_ = 0;       // pieces of all guests
  std::size_t untold_ = 0;       // guests with news
};

}  // namespace gimlet::pgas::ucx

#endif
