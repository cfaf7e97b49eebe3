// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/block_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace gimlet::device {
namespace {

unsigned count(std::uint32_t bits) {
  return static_cast<unsigned>(std::popcount(bits));
}

}  // namespace

void BlockSync::reset(unsigned threads) {
  warps_ = (threads + kWarpSize - 1) / kWarpSize;
  live_count_ = runnable_count_ = threads;
  block_arrived_ = 0;
  predicates_ = counted_ = 0;
  warps_runnable_ = ~0u >> (kMaxWarps - warps_);
  for (unsigned warp = 0; warp < warps_; ++warp) {
    const unsigned lanes = std::min(kWarpSize, threads - warp * kWarpSize);
    live_[warp] = runnable_[warp] = ~0u >> (kWarpSize - lanes);
    warp_arrived_[warp] = 0;
  }
  if (lanes_.size() < warps_ * kWarpSize) lanes_.resize(warps_ * kWarpSize);
  for (; named_in_use_ != 0; named_in_use_ &= named_in_use_ - 1)
    named_[lowest(named_in_use_)] = Named();
}

void BlockSync::release(unsigned warp, std::uint32_t lanes) {
  const std::uint32_t fresh = lanes & ~runnable_[warp];
  if (fresh == 0) return;
  runnable_[warp] |= fresh;
  runnable_count_ += count(fresh);
  warps_runnable_ |= 1u << warp;
}

void BlockSync::complete_block() {
  // Every live thread has arrived, so nobody is parked anywhere else.
  for (unsigned warp = 0; warp < warps_; ++warp) {
    runnable_[warp] = live_[warp];
    if (live_[warp] != 0) warps_runnable_ |= 1u << warp;
  }
  runnable_count_ = live_count_;
  block_arrived_ = 0;
  ++block_barriers_;
  counted_ = predicates_;
  predicates_ = 0;
}

bool BlockSync::complete_named(unsigned id) {
  Named& barrier = named_[id];
  // As in the hardware a warp counts whole: lanes that do not exist or are gone count as arrived
  // once the first lane of their warp is there.
  unsigned arrived = 0;
  for (unsigned warp = 0; warp < warps_; ++warp) {
    if (barrier.arrived[warp] == 0) continue;
    arrived += kWarpSize - count(live_[warp] & ~barrier.arrived[warp]);
  }
  if (arrived < barrier.threads) return false;
  for (unsigned warp = 0; warp < warps_; ++warp) release(warp, barrier.arrived[warp] & live_[warp]);
  barrier = Named();
  named_in_use_ &= ~(1u << id);
  return true;
}

bool BlockSync::arrive_named(unsigned thread, unsigned id, unsigned threads) {
  named_in_use_ |= 1u << id;
  named_[id].threads = threads;
  named_[id].arrived[thread / kWarpSize] |= 1u << (thread % kWarpSize);
  if (complete_named(id)) return true;
  park(thread);
  return false;
}

void BlockSync::complete_warp(unsigned warp, std::uint32_t members, Exchange kind) {
  Lane* const lanes = &lanes_[warp * kWarpSize];
  if (kind == Exchange::kShuffle) {
    for (std::uint32_t rest = members; rest != 0; rest &= rest - 1) {
      Lane& lane = lanes[lowest(rest)];
      const bool there = (members >> lane.source & 1) != 0;
      lane.result = there ? lanes[lane.source].value : lane.value;
    }
  } else if (kind == Exchange::kBallot) {
    std::uint32_t bits = 0;
    for (std::uint32_t rest = members; rest != 0; rest &= rest - 1)
      if (lanes[lowest(rest)].value != 0) bits |= rest & -rest;
    for (std::uint32_t rest = members; rest != 0; rest &= rest - 1)
      lanes[lowest(rest)].result = bits;
  }
  warp_arrived_[warp] &= ~members;
  release(warp, members);
}

bool BlockSync::arrive_warp(unsigned thread, std::uint32_t mask, Exchange kind, std::uint64_t value,
                            unsigned source) {
  const unsigned warp = thread / kWarpSize;
  Lane& lane = lanes_[thread];
  lane.mask = mask;
  lane.kind = kind;
  if (kind != Exchange::kNone) {
    lane.value = value;
    lane.source = static_cast<std::uint8_t>(source % kWarpSize);
  }
  warp_arrived_[warp] |= 1u << (thread % kWarpSize);
  const std::uint32_t members = mask & live_[warp];
  if ((members & ~warp_arrived_[warp]) == 0) {
    complete_warp(warp, members, kind);
    return true;
  }
  park(thread);
  return false;
}

void BlockSync::recheck_warp(unsigned warp) {
  for (std::uint32_t waiting = warp_arrived_[warp]; waiting != 0;) {
    const Lane& lane = lanes_[warp * kWarpSize + lowest(waiting)];
    const std::uint32_t members = lane.mask & live_[warp];
    if ((members & ~warp_arrived_[warp]) == 0) complete_warp(warp, members, lane.kind);
    waiting &= ~lane.mask & (waiting - 1);
  }
}

void BlockSync::leave(unsigned thread) {
  const unsigned warp = thread / kWarpSize;
  if (is_runnable(thread)) park(thread);  // a thread of a failed launch may still be parked
  live_[warp] &= ~(1u << (thread % kWarpSize));
  --live_count_;
  if (live_count_ == 0) return;
  if (block_arrived_ == live_count_) complete_block();
  if (warp_arrived_[warp] != 0) recheck_warp(warp);
  for (std::uint32_t ids = named_in_use_; ids != 0; ids &= ids - 1) complete_named(lowest(ids));
}

std::string BlockSync::describe() const {
  std::string text;
  const auto add = [&text](unsigned threads, const std::string& where) {
    if (threads == 0) return;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {} at {}", threads, threads == 1 ? "thread" : "threads", where);
  };
  add(block_arrived_, "__syncthreads");
  unsigned in_warps = 0;
  for (unsigned warp = 0; warp < warps_; ++warp) in_warps += count(warp_arrived_[warp]);
  add(in_warps, "a barrier or exchange of their warp");
  for (std::uint32_t ids = named_in_use_; ids != 0; ids &= ids - 1) {
    const unsigned id = lowest(ids);
    unsigned there = 0;
    for (unsigned warp = 0; warp < warps_; ++warp) there += count(named_[id].arrived[warp]);
    add(there, fmt::format("barrier {} of {} threads", id, named_[id].threads));
  }
  return text;
}

}  // namespace gimlet::device
