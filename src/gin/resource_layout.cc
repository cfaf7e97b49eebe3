// SPDX-License-Identifier: BSD-3-Clause
#include "gin/resource_layout.h"

#include <bit>

#include "gin/impl/barrier_layout.h"
#include "gin/impl/tables.h"

namespace gimlet::gin {
namespace {

constexpr std::uint64_t kLine = 128;         // also the unit of resource handles
constexpr std::uint32_t kSignalsOfLine = 8;  // 64 bytes
constexpr std::uint64_t kMostContexts = 1024;
constexpr std::uint64_t kMostSignals = 1u << 24;
constexpr std::uint64_t kMostCounters = 65535;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

struct Named {
  const char* name;
  int value;
};

/// Requirements that the program has set up, of a revision that this library knows.
Status check_header(const ginDevCommRequirements_t* requirements) {
  if (requirements == nullptr) return fail(Code::kInvalidArgument, "the requirements are null");
  if (requirements->magic != GIN_API_MAGIC || requirements->size != sizeof *requirements) {
    return fail(Code::kInvalidUsage,
                "the requirements were not set up with GIN_DEV_COMM_REQUIREMENTS_INITIALIZER");
  }
  if (requirements->version > GIN_VERSION_CODE) {
    return fail(Code::kInvalidUsage,
                "the program was compiled for revision {} of GIN, this library has {}",
                requirements->version, GIN_VERSION_CODE);
  }
  return {};
}

Status check_values(const ginDevCommRequirements_t& r) {
  const Named counts[] = {{"ginContextCount", r.ginContextCount},
                          {"ginSignalCount", r.ginSignalCount},
                          {"ginCounterCount", r.ginCounterCount},
                          {"worldGinBarrierCount", r.worldGinBarrierCount},
                          {"railGinBarrierCount", r.railGinBarrierCount},
                          {"ginQueueDepth", r.ginQueueDepth}};
  for (const Named& count : counts) {
    if (count.value < 0) {
      return fail(Code::kInvalidArgument, "{} is {}; allowed is 0 and more", count.name,
                  count.value);
    }
  }
  const Named absent[] = {{"lsaMultimem", r.lsaMultimem ? 1 : 0},
                          {"barrierCount", r.barrierCount},
                          {"lsaBarrierCount", r.lsaBarrierCount},
                          {"lsaLLA2ABlockCount", r.lsaLLA2ABlockCount},
                          {"lsaLLA2ASlotCount", r.lsaLLA2ASlotCount}};
  for (const Named& feature : absent) {
    if (feature.value != 0) {
      return fail(Code::kInvalidUsage, "{} is {}; this release offers none", feature.name,
                  feature.value);
    }
  }
  for (const ginTeamRequirements_t* t = r.teamRequirementsList; t != nullptr; t = t->next) {
    if (t->multimem) {
      return fail(Code::kInvalidUsage, "a team requires multicast memory; no path offers it");
    }
  }
  for (auto* e = r.resourceRequirementsList; e != nullptr; e = e->next) {
    if (e->ginSignalCount < 0 || e->ginCounterCount < 0) {
      return fail(Code::kInvalidArgument,
                  "a resource requirement has {} signals and {} counters; allowed is 0 and more",
                  e->ginSignalCount, e->ginCounterCount);
    }
    if (e->bufferAlign != 0 && !std::has_single_bit(e->bufferAlign)) {
      return fail(Code::kInvalidArgument,
                  "a resource requirement has alignment {}; allowed are powers of two, or 0",
                  e->bufferAlign);
    }
  }
  if (r.ginConnectionType < GIN_CONNECTION_NONE || r.ginConnectionType > GIN_CONNECTION_RAIL) {
    return fail(Code::kInvalidArgument, "ginConnectionType is {}; allowed are none, full and rail",
                static_cast<int>(r.ginConnectionType));
  }
  return {};
}

bool asks_for_gin(const ginDevCommRequirements_t& r) {
  if (r.ginSignalCount > 0 || r.ginCounterCount > 0) return true;
  if (r.worldGinBarrierCount > 0 || r.railGinBarrierCount > 0) return true;
  for (auto* e = r.resourceRequirementsList; e != nullptr; e = e->next) {
    if (e->ginSignalCount > 0 || e->ginCounterCount > 0) return true;
  }
  return false;
}

Status check_connection(const ginDevCommRequirements_t& r, ResourceLayout& layout) {
  layout.connection = r.ginForceEnable ? GIN_CONNECTION_FULL : r.ginConnectionType;
  layout.uses_gin = layout.connection != GIN_CONNECTION_NONE;
  if (!layout.uses_gin && asks_for_gin(r)) {
    return fail(Code::kInvalidArgument,
                "signals, counters or GIN barriers are required, but ginConnectionType is none");
  }
  if (layout.connection == GIN_CONNECTION_RAIL && r.worldGinBarrierCount > 0) {
    return fail(Code::kInvalidArgument,
                "worldGinBarrierCount is {}, but ginConnectionType rail does not connect all ranks",
                r.worldGinBarrierCount);
  }
  return {};
}

/// Hands out indexes of signals (or counters) of each context, in 64 bits so that sums can't wrap.
class Indexes {
 public:
  explicit Indexes(int first) : next_(static_cast<std::uint64_t>(first)) {}
  std::uint32_t take(std::uint64_t count, std::uint32_t unit) {
    if (count == 0) return static_cast<std::uint32_t>(next_);
    const std::uint64_t start = round_up(next_, unit);
    next_ = start + count;
    return static_cast<std::uint32_t>(start);
  }
  std::uint64_t taken() const { return next_; }

 private:
  std::uint64_t next_;
};

std::uint64_t barrier_signals(int count, int ranks) {
  return static_cast<std::uint64_t>(count) * ::gin::impl::barrier_pitch(ranks);
}

Status check_limits(std::uint64_t contexts, std::uint64_t signals, std::uint64_t counters) {
  if (contexts > kMostContexts) {
    return fail(Code::kInvalidArgument, "ginContextCount is {}; at most {} are allowed", contexts,
                kMostContexts);
  }
  if (signals > kMostSignals) {
    return fail(Code::kInvalidArgument,
                "{} signals are required of each context; at most {} are allowed", signals,
                kMostSignals);
  }
  if (counters > kMostCounters) {
    return fail(Code::kInvalidArgument,
                "{} counters are required of each context; at most {} are allowed", counters,
                kMostCounters);
  }
  return {};
}

}  // namespace

Status make_layout(const ginDevCommRequirements_t* requirements, int ranks, int lsa_size,
                   ResourceLayout& layout) {
  GIMLET_TRY(check_header(requirements));
  const ginDevCommRequirements_t& r = *requirements;
  GIMLET_TRY(check_values(r));
  GIMLET_TRY(check_connection(r, layout));

  layout.strong_legacy = r.ginStrongSignalsRequired;
  layout.contexts = !layout.uses_gin         ? 0
                    : r.ginContextCount == 0 ? 1
                                             : static_cast<std::uint32_t>(r.ginContextCount);
  Indexes signals(r.ginSignalCount);
  Indexes counters(r.ginCounterCount);
  layout.world_barriers = static_cast<std::uint32_t>(r.worldGinBarrierCount);
  layout.rail_barriers = static_cast<std::uint32_t>(r.railGinBarrierCount);
  layout.world_barrier.signal0 =
      signals.take(barrier_signals(r.worldGinBarrierCount, ranks), kSignalsOfLine);
  layout.rail_barrier.signal0 =
      signals.take(barrier_signals(r.railGinBarrierCount, ranks / lsa_size), kSignalsOfLine);
  for (auto* e = r.resourceRequirementsList; e != nullptr; e = e->next) {
    layout.grants.push_back(
        {e, 0, signals.take(static_cast<std::uint64_t>(e->ginSignalCount), kSignalsOfLine),
         counters.take(static_cast<std::uint64_t>(e->ginCounterCount), 1)});
  }
  GIMLET_TRY(check_limits(layout.contexts, signals.taken(), counters.taken()));
  layout.signals = static_cast<std::uint32_t>(signals.taken());
  layout.counters = static_cast<std::uint32_t>(counters.taken());

  layout.signals_pitch = round_up(8 * signals.taken(), kLine);
  layout.counters_pitch = round_up(8 * counters.taken(), kLine);
  layout.signals_offset = round_up(sizeof(ginErrorWord), kLine);
  layout.shadows_offset = layout.signals_offset + layout.contexts * layout.signals_pitch;
  layout.counters_offset = layout.shadows_offset + layout.contexts * layout.signals_pitch;
  layout.slots_offset = layout.counters_offset + layout.contexts * layout.counters_pitch;
  std::uint64_t end = layout.slots_offset + 4 * static_cast<std::uint64_t>(ranks);
  for (ResourceLayout::Grant& grant : layout.grants) {
    const std::uint64_t align = grant.entry->bufferAlign;
    grant.buffer_offset = round_up(end, align > kLine ? align : kLine);
    end = grant.buffer_offset + grant.entry->bufferSize;
    if (end < grant.buffer_offset || end / kLine > UINT32_MAX) {
      return fail(Code::kInvalidArgument, "resource buffers of more than {} bytes are required",
                  kLine * UINT32_MAX);
    }
  }
  layout.bytes = end;
  return {};
}

}  // namespace gimlet::gin
