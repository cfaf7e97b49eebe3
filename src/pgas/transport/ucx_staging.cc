// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/ucx_staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "pgas/transport/carry_out.h"

namespace gimlet::pgas::ucx {
namespace {

/// No source has a use for more at a time.
constexpr std::uint32_t kMostAsked = 1024;

bool is_read(const BouncePiece& piece) {
  return piece.header.kind == MessageKind::kStageRead;
}

}  // namespace

Status StagingService::make(std::size_t bytes, ServedMemory& memory, Answers& answers,
                            std::unique_ptr<StagingService>& out) {
  std::unique_ptr<StagingService> made(new StagingService(memory, answers));
  GIMLET_TRY(BouncePool::make(bytes, "gimlet-bounce-target", made->pool_));
  out = std::move(made);
  return {};
}

StagingService::Guest* StagingService::find(int source) {
  const auto found = guests_.find(source);
  return found == guests_.end() || found->second.is_gone ? nullptr : &found->second;
}

bool StagingService::ask(const MessageHeader& header) {
  Guest& guest = guests_.try_emplace(header.source, header.source).first->second;
  if (guest.is_gone || header.bytes == 0 || header.bytes > kMostAsked - guest.asked) return false;
  if (guest.asked == 0) waiting_.push_back(&guest);
  guest.asked += header.bytes;
  pump();
  return true;
}

/// One piece for each that waits, in turn.
void StagingService::grant() {
  while (can_grant() && !waiting_.empty()) {
    Guest& guest = *waiting_.front();
    waiting_.pop_front();
    if (unused_.empty())
      unused_.push_back(pieces_.emplace_back(std::make_unique<BouncePiece>()).get());
    BouncePiece& piece = *unused_.back();
    unused_.pop_back();
    piece = {};
    piece.memory = pool_->take();
    guest.granted.push_back(&piece);
    --guest.asked;
    ++guest.ungiven;
    note_news(guest);
    if (guest.asked != 0) waiting_.push_back(&guest);
  }
}

void StagingService::note_news(Guest& guest) {
  if (!std::exchange(guest.has_news, true)) ++untold_;
}

/// False: there is no way to the guest yet.
bool StagingService::tell(Guest& guest) {
  if (!answers_.send_news(guest.source, guest.ungiven, guest.over)) return false;
  guest.ungiven = 0;
  // Sending may have lost the guest.
  if (std::exchange(guest.has_news, false)) --untold_;
  return true;
}

bool StagingService::append(Guest& guest, const std::byte* data, std::size_t length) {
  BouncePiece& piece = *guest.granted.front();
  if (length > BouncePool::kPieceBytes - piece.filled) return false;
  if (length != 0) std::memcpy(piece.memory + piece.filled, data, length);
  piece.filled += static_cast<std::uint32_t>(length);
  return true;
}

bool StagingService::fill(const MessageHeader& header, const std::byte* data, std::size_t length) {
  Guest* guest = find(header.source);
  return guest != nullptr && !guest->granted.empty() && append(*guest, data, length);
}

bool StagingService::close(const MessageHeader& header, const std::byte* data, std::size_t length) {
  Guest* guest = find(header.source);
  if (guest == nullptr || guest->granted.empty()) return false;
  const bool reads = header.kind == MessageKind::kStageRead;
  if (reads && (length != 0 || header.bytes == 0 || header.bytes > BouncePool::kPieceBytes))
    return false;
  if (!reads && !append(*guest, data, length)) return false;
  BouncePiece& piece = *guest->granted.front();
  guest->granted.pop_front();
  piece.header = header;
  if (!reads) piece.header.bytes = piece.filled;
  piece.is_void = !start(piece);
  guest->closed.push_back(&piece);
  ++closed_;
  pump();
  return true;
}

/// Of the whole rest of the request.
bool StagingService::is_place(const MessageHeader& header) const {
  const std::uint64_t bytes = header.bytes + bytes_to_come(header);
  if (bytes == 0) return true;
  return bytes >= header.bytes && memory_.staged()->holds(header.segment, header.offset, bytes);
}

/// Checks a piece and starts its copy. False: it was refused, and its source has been told.
bool StagingService::start(BouncePiece& piece) {
  MessageHeader& header = piece.header;
  const bool reads = is_read(piece);
  std::byte* word = nullptr;
  if (!reads && header.width != 0 &&
      !find_signal(memory_, header.word_segment, header.word_offset, word)) {
    MessageHeader signal = header;
    signal.kind = MessageKind::kPutSignal;
    signal.segment = header.word_segment;
    signal.offset = header.word_offset;
    answers_.send_refusal(signal, 8);
    return false;
  }
  StagedSegments& staged = *memory_.staged();
  const auto copy = [&] {
    if (header.bytes == 0) return true;
    return reads ? staged.start_out(header.segment, header.offset, piece.memory, header.bytes,
                                    piece.copy)
                 : staged.start_in(header.segment, header.offset, piece.memory, header.bytes,
                                   piece.copy);
  };
  if (is_place(header) && copy()) return true;
  const std::uint64_t bytes = header.bytes + bytes_to_come(header);
  MessageHeader refused = header;
  refused.kind = reads ? MessageKind::kRead : MessageKind::kPut;
  answers_.send_refusal(refused, bytes < header.bytes ? ~std::uint64_t{0} : bytes);
  return false;
}

/// Its payload, and everything before, has landed. The segment may be gone by now.
void StagingService::raise(const MessageHeader& header) {
  std::byte* word = nullptr;
  if (!find_signal(memory_, header.word_segment, header.word_offset, word)) return;
  raise_signal(memory_, header.word_segment, header.word_offset, word,
               static_cast<AmoOp>(header.op), header.operand);
}

/// What follows when the oldest piece's copy is over. False: it can't be told yet.
bool StagingService::settle(Guest& guest, BouncePiece& piece) {
  if (!piece.is_void && is_read(piece)) return answers_.send_piece(guest.source, piece);
  if (!piece.is_void && piece.header.kind == MessageKind::kStagePut && piece.header.width != 0)
    raise(piece.header);
  free(piece);
  return true;
}

bool StagingService::advance(Guest& guest) {
  bool moved = false;
  while (!guest.closed.empty()) {
    BouncePiece& piece = *guest.closed.front();
    if (!memory_.staged()->is_over(piece.copy)) break;
    if (!settle(guest, piece)) break;
    guest.closed.pop_front();
    --closed_;
    ++guest.over;
    if (!guest.is_gone) note_news(guest);
    moved = true;
  }
  return moved;
}

bool StagingService::pump() {
  bool moved = false;
  for (auto& [source, guest] : guests_) moved |= advance(guest);
  grant();
  for (auto& [source, guest] : guests_) {
    if (guest.has_news) moved |= tell(guest);
  }
  return moved;
}

void StagingService::free(BouncePiece& piece) {
  pool_->give_back(piece.memory);
  unused_.push_back(&piece);
}

void StagingService::sent(BouncePiece& piece) {
  if (--piece.sends == 0) free(piece);
}

void StagingService::forget(int source) {
  Guest* const guest = find(source);
  if (guest == nullptr) return;
  guest->is_gone = true;
  std::erase(waiting_, guest);
  guest->asked = 0;
  for (BouncePiece* piece : guest->granted) free(*piece);
  guest->granted.clear();
  for (BouncePiece* piece : guest->closed) piece->is_void = true;
  if (std::exchange(guest->has_news, false)) --untold_;
}

}  // namespace gimlet::pgas::ucx
