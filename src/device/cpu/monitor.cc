// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "device/clock.h"
#include "device/cpu/executor.h"
#include "device/cpu/thread_run.h"
#include "device/cpu/thread_trace.h"
#include "device/log.h"
#include "device/settings.h"

namespace gimlet::device {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(10);
constexpr std::uint64_t kHeldNs = 50'000'000;
constexpr std::uint64_t kReportHoldNs = 5'000'000'000;
constexpr std::uint64_t kWaitCheckNs = 250'000'000;
constexpr std::size_t kMaxLines = 32;

/// All threads of one block that wait for the same.
struct Waiters {
  WaitNote::Copy first;
  std::uint64_t seen = 0;
  std::string first_thread;
  unsigned count = 0;
};

bool is_same(const gin_exec_note& a, const gin_exec_note& b) {
  return a.call == b.call && a.object == b.object && a.index == b.index && a.awaited == b.awaited;
}

std::string sentence(const Block& block, const Waiters& waiters, std::uint64_t now) {
  const gin_exec_note& note = waiters.first.note;
  std::string line;
  if (note.rank >= 0) line += fmt::format("rank {}: ", note.rank);
  line += fmt::format("kernel {}, block {}, thread {}", block.launch->name(), text(block.index),
                      waiters.first_thread);
  if (waiters.count > 1) line += fmt::format(" and {} more", waiters.count - 1);
  line += fmt::format(": {} has waited {:.1f} s for {} {}", note.call,
                      static_cast<double>(now - waiters.first.since_ns) * 1e-9, note.object,
                      note.index);
  if (note.peer >= 0) line += fmt::format(" from rank {}", note.peer);
  return line + fmt::format(": it is {}, awaited is {}", waiters.seen, note.awaited);
}

/// Collects what the threads of one block have waited for longer than `limit`.
class BlockWaits {
 public:
  BlockWaits(const Block& block, std::uint64_t now, std::uint64_t limit)
      : block_(block), now_(now), limit_(limit) {}

  void add(DeviceThread& thread) {
    WaitNote::Copy copy;
    if (thread.note.reported() || !thread.note.copy(copy) || copy.since_ns + limit_ > now_) return;
    thread.note.mark_reported();
    for (Waiters& known : waiters_) {
      if (is_same(known.first.note, copy.note)) {
        ++known.count;
        return;
      }
    }
    const UnseenByTsan quiet;  // constant while its note stands
    waiters_.push_back(
        {copy, thread.wait.seen.load(std::memory_order_relaxed), text(thread.info.thread), 1});
  }
  void append_to(std::vector<std::string>& lines) const {
    for (const Waiters& waiters : waiters_) lines.push_back(sentence(block_, waiters, now_));
  }

 private:
  const Block& block_;
  const std::uint64_t now_;
  const std::uint64_t limit_;
  std::vector<Waiters> waiters_;
};

}  // namespace

void Monitor::start() {
  thread_ = std::thread([this] { run(); });
}

void Monitor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Monitor::wake() {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = true;
  }
  changed_.notify_one();
}

void Monitor::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!wanted_) {
      watches_.clear();
      changed_.wait(lock, [this] { return wanted_ || stopping_; });
    }
    // A launch that begins from here on sets it again.
    wanted_ = false;
    lock.unlock();
    const bool busy = executor_.has_launches();
    if (busy) {
      const std::uint64_t now = now_ns();
      watch_workers(now);
      report_waits(now);
    }
    lock.lock();
    if (!busy) continue;
    wanted_ = true;
    changed_.wait_for(lock, kPeriod, [this] { return stopping_; });
  }
}

std::uint64_t Monitor::held_ns(Worker& worker, std::uint64_t now) {
  Watch& watch = watches_[&worker];
  const std::uint64_t ticks = worker.ticks();
  if (!worker.is_running_block()) {
    watch.since_ns = 0;
  } else if (watch.since_ns == 0 || watch.ticks != ticks) {
    watch = {ticks, now};
  }
  return watch.since_ns == 0 ? 0 : now - watch.since_ns;
}

void Monitor::watch_workers(std::uint64_t now) {
  std::vector<Worker*> held;
  bool nobody_is_free = true;
  for (Worker* const worker : executor_.workers()) {
    const std::uint64_t time = held_ns(*worker, now);
    if (time >= kHeldNs) {
      held.push_back(worker);
    } else if (!worker->is_reserve() || !worker->is_idle()) {
      nobody_is_free = false;
    }
    if (time >= kReportHoldNs) report_hold(*worker);
  }
  for (Worker* const worker : held) {
    if (worker->has_waiting() || (nobody_is_free && executor_.has_startable())) {
      executor_.relieve(*worker, nobody_is_free);
      break;  // one new worker a period
    }
  }
}

void Monitor::report_hold(Worker& worker) {
  std::string who;
  Trace place;
  worker.visit_current([&](DeviceThread& thread) {
    const UnseenByTsan quiet;  // it has not moved for seconds
    if (thread.block->launch->hold_reported.exchange(true, std::memory_order_relaxed)) return;
    who = where(thread);
    place = take_trace(worker.system_thread(), thread);
  });
  if (who.empty()) return;
  log::warning(
      "{} has run for {} s without giving way to the other threads of its block; if it waits for "
      "one of them in a plain loop it never ends: use atomics, __nanosleep or "
      "GIN_EXECUTOR=threads",
      who, kReportHoldNs / 1'000'000'000);
  int frame = 0;
  for (const std::string& line : describe(place))
    log::warning("{}, frame {}: {}", who, frame++, line);
}

void Monitor::report_waits(std::uint64_t now) {
  const double seconds = settings().gin_wait_report;
  if (seconds <= 0 || now - waits_checked_ns_ < kWaitCheckNs) return;
  waits_checked_ns_ = now;
  const auto limit = static_cast<std::uint64_t>(seconds * 1e9);
  std::vector<std::string> lines;
  for (Worker* const worker : executor_.workers()) {
    worker->visit([&](FiberBlock& block) {
      BlockWaits waits(block, now, limit);
      for (std::atomic<Fiber*>& slot : block.fibers)
        if (Fiber* const fiber = slot.load(std::memory_order_acquire)) waits.add(*fiber);
      waits.append_to(lines);
    });
  }
  executor_.visit_thread_blocks([&](ThreadBlock& block) {
    BlockWaits waits(block, now, limit);
    for (SystemThread& thread : block.threads) waits.add(thread);
    waits.append_to(lines);
  });
  const std::size_t shown = std::min(lines.size(), kMaxLines);
  for (std::size_t i = 0; i < shown; ++i) log::warning("{}", lines[i]);
  if (shown < lines.size()) log::warning("{} more waits of that kind", lines.size() - shown);
}

}  // namespace gimlet::device
