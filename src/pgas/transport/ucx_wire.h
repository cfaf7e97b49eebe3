// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_UCX_WIRE_H
#define GIMLET_PGAS_TRANSPORT_UCX_WIRE_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/status.h"

/// What PEs say to each other through UCX: the blob that a PE publishes and the header of its
/// active messages. Both ends run the same build on the same architecture.
namespace gimlet::pgas::ucx {

/// The one active message id in use.
inline constexpr unsigned kMessageId = 1;

enum class MessageKind : std::uint8_t {
  kPut = 1,    // payload to (segment, offset), a part of a longer put when `operand` is not 0
  kUpdate,     // word at (segment, offset); no reply
  kFetch,      // like kUpdate, the old value comes back as kValue
  kPutSignal,  // payload to (segment, offset), then the word at (word_segment, word_offset)
  kRead,       // `bytes` at (segment, offset) come back: up to a word as kValue, more as kData
  kAskDone,    // everything of this source before it is done: kDone comes back
  kValue,      // reply: `operand` is the value
  kData,       // reply: payload for `offset` of the result
  kNote,       // payload for the listener `ticket`
  kRefused,    // reply to a put or update with a listener, see told_by()
  kDone,       // reply: the messages before kAskDone are done; `refused` tells whether all were
  // To and from memory that no transport may touch, see StagingService.
  kStageAsk,   // the source has a use for `bytes` pieces
  kStageNews,  // reply: `bytes` pieces are granted, `operand` pieces of the source are over
  kStageData,  // payload for the source's oldest piece
  kStagePart,  // payload closes the piece: to (segment, offset), a part as kPut is
  kStagePut,   // payload closes the piece: to (segment, offset), then with a `width` the word
  kStageRead,  // closes the piece: `bytes` at (segment, offset) come back as kData
};

/// A message's header. The target trusts none of it.
struct MessageHeader {
  MessageKind kind;
  std::uint8_t op;  // AmoOp; in a refusal the MessageKind that was refused
  std::uint8_t width;
  std::uint8_t refused;  // replies: 0, or 1 when a request was refused
  std::int32_t source;   // rank of the sender
  std::uint16_t segment;
  std::uint16_t word_segment;
  std::uint32_t bytes;  // of payload, or asked for
  std::uint64_t offset;
  std::uint64_t operand;      // kPut: bytes that follow; in a refusal the size of the segment
  std::uint64_t word_offset;  // kFetch, kUpdate: to compare with; kRefused: bytes of the request
  std::uint64_t ticket;       // comes back in the reply; kPut, kUpdate, kPutSignal: see told_by()
};
static_assert(sizeof(MessageHeader) == 48);

/// A kPut tells what its put will still do, so that each part can be refused for the whole: the
/// bytes that follow it, and with a `width` the word that the last part will raise.
inline std::uint64_t bytes_to_come(const MessageHeader& put) {
  const bool is_part = put.kind == MessageKind::kPut || put.kind == MessageKind::kStagePart;
  return is_part ? put.operand : 0;
}

/// Puts and updates name who hears of a refusal at once; with none it is kept until kAskDone.
inline constexpr std::uint64_t told_by(std::uint32_t listener) {
  return std::uint64_t{listener} + 1;
}

struct RemoteSegment {
  std::uint64_t base;  // in the address space of the PE that published it
  std::uint64_t size;
  std::vector<std::byte> key;  // packed remote key
};

struct Blob {
  std::vector<std::byte> worker_address;
  std::vector<RemoteSegment> segments;
};

std::vector<std::byte> encode(const Blob& blob);
Status decode(std::span<const std::byte> bytes, Blob& blob);

}  // namespace gimlet::pgas::ucx

#endif
