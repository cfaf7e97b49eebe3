// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_CARRY_OUT_H
#define GIMLET_PGAS_TRANSPORT_CARRY_OUT_H

#include <cstdint>

#include "pgas/transport/carrier.h"
#include "pgas/transport/staged_segments.h"

namespace gimlet::pgas {

/// The memory of a request's target, where loads and stores reach it.
class TargetMemory {
 public:
  virtual ~TargetMemory() = default;
  /// Null when any byte of the range lies outside the segment, and for every staged segment.
  virtual std::byte* locate(SegmentNumber segment, std::uint64_t offset,
                            std::uint64_t bytes) const = 0;
  /// 0: there is no such segment.
  virtual std::uint64_t size_of(SegmentNumber segment) const = 0;
  /// What can be reached by copies only; null: nothing.
  virtual StagedSegments* staged() const { return nullptr; }
};

/// Looks up the word of a signal. False: there is none. `word` is null when only copies reach it.
bool find_signal(const TargetMemory& memory, SegmentNumber segment, std::uint64_t offset,
                 std::byte*& word);
/// Updates what find_signal() found, and wakes device threads. A staged segment may have gone
/// since: then nothing happens.
void raise_signal(const TargetMemory& memory, SegmentNumber segment, std::uint64_t offset,
                  std::byte* word, AmoOp op, std::uint64_t value);

enum class CarryStep : std::uint8_t { kMore, kDone, kRefused };

/// One step of a request: the checks, and at most 256 KiB of the copy. The caller keeps the
/// segments in place during a step, and may let go between two. With kRefused nothing was done in
/// this step, for the reason given. A copy of a staged segment is waited for: that takes the copy
/// engine's time, never another rank's.
CarryStep carry_step(CarriedRequest& request, const TargetMemory& memory, Refusal& refusal);

/// Does all of a put, a get or an AMO now, by loads and stores. False: nothing was done, for the
/// reason given.
bool carry_out(CarriedRequest& request, const TargetMemory& memory, Refusal& refusal);

}  // namespace gimlet::pgas

#endif
