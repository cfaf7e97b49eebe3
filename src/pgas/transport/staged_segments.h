// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_STAGED_SEGMENTS_H
#define GIMLET_PGAS_TRANSPORT_STAGED_SEGMENTS_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "device/memory_kind.h"
#include "pgas/transport/carrier.h"

namespace gimlet::pgas {

/// A copy between a staged segment and host memory.
struct StagedCopy {
  device::CopyQueue* queue = nullptr;
  std::uint64_t number = 0;
};

/// What this rank offers of memory that no transport may touch: transports, and threads that serve
/// them, get no address of it, only copies and updates of words. Such segments have numbers of
/// their own, so whoever serves plain memory never finds one; this is the one place that hands out
/// nothing but copies.
///
/// Order: copies of one kind are done in the order of their starts. A word is updated at once, so
/// whoever updates it for a signal does so when the copies that the signal is about are over.
///
/// Words: where atomic instructions of this CPU reach a word they update it, and exclude everybody
/// else's. Elsewhere this class is the word's only agent in the process: it copies the word out,
/// changes it, and copies it back, one thread at a time.
///
/// Failure: a place outside its segment is told by holds() and is_word(); asking for a copy there
/// is a mistake of the caller. remove() returns when no copy refers to the segment any more: it
/// waits for the copy engine, never for a rank.
///
/// All calls are safe from any thread.
class StagedSegments {
 public:
  /// False: all numbers are taken.
  bool add(std::byte* base, std::size_t size, const device::MemoryKind& kind,
           SegmentNumber& number);
  void remove(SegmentNumber number);

  /// 0: there is no such segment.
  std::uint64_t size_of(SegmentNumber number) const;
  bool holds(SegmentNumber number, std::uint64_t offset, std::uint64_t bytes) const;
  bool is_word(SegmentNumber number, std::uint64_t offset, unsigned width) const;

  /// Starts a copy into the segment, or out of it. False: the place is not there any more.
  bool start_in(SegmentNumber number, std::uint64_t offset, const void* from, std::size_t bytes,
                StagedCopy& copy);
  bool start_out(SegmentNumber number, std::uint64_t offset, void* to, std::size_t bytes,
                 StagedCopy& copy);
  bool is_over(const StagedCopy& copy) const;
  /// Returns when it is over.
  void finish(const StagedCopy& copy) const;

  /// Updates the word and gives what it held. False: it is not there any more.
  bool update(SegmentNumber number, std::uint64_t offset, unsigned width, AmoOp op,
              std::uint64_t operand, std::uint64_t compare, std::uint64_t& old);

 private:
  struct Engine {
    const device::MemoryKind* kind;
    std::unique_ptr<device::CopyQueue> queue;
    std::uint64_t started = 0;
  };
  struct Segment {
    std::byte* base;
    std::size_t size;
    Engine* engine;
  };

  Engine& engine_of(const device::MemoryKind& kind);
  std::byte* locate(SegmentNumber number, std::uint64_t offset, std::uint64_t bytes,
                    Engine*& engine) const;

  mutable std::mutex mutex_;
  std::deque<Engine> engines_;
  std::map<SegmentNumber, Segment> segments_;
  // Numbers are given out in turn: messages for the last owner of one may be under way.
  std::uint32_t next_ = kFirstStaged;
};

}  // namespace gimlet::pgas

#endif
