// SPDX-License-Identifier: BSD-3-Clause
#include "gin/wait_report.h"

#include <string>

#include "device/clock.h"
#include "device/log.h"
#include "device/settings.h"
#include "gin/communicator.h"
#include "gin/device_text.h"
#include "gin/impl/hooks.h"

namespace gimlet::gin {

// Two threads that open a new interval at the same time may write a line more or less.
bool ReportBudget::take(std::uint64_t now_ns, std::uint64_t interval_ns, std::uint32_t& unsaid) {
  unsaid = 0;
  std::uint64_t start = interval_start_.load(std::memory_order_relaxed);
  if (now_ns - start >= interval_ns &&
      interval_start_.compare_exchange_strong(start, now_ns, std::memory_order_relaxed)) {
    const std::uint32_t wanted = lines_.exchange(0, std::memory_order_relaxed);
    if (wanted > kLines) unsaid = wanted - kLines;
  }
  return lines_.fetch_add(1, std::memory_order_relaxed) < kLines;
}

namespace {

constexpr std::uint32_t kLooksPerClock = 16;

std::uint64_t nanoseconds(double seconds) {
  return static_cast<std::uint64_t>(seconds * 1e9);
}

std::string who_waits(const Communicator& comm, const ginWait& wait, std::uint64_t now) {
  return fmt::format("{}{} has waited {:.1f} s for {}", comm.sentence_prefix(), calling_thread(),
                     static_cast<double>(now - wait.started) / 1e9, awaited_object(comm, wait));
}

void report(Communicator& comm, const ginWait& wait, std::uint64_t seen, std::uint64_t now,
            std::uint64_t interval) {
  std::uint32_t unsaid = 0;
  if (!comm.report_budget().take(now, interval, unsaid)) return;
  log::info("{}: value {}, awaited at least {}", who_waits(comm, wait, now), seen, wait.awaited);
  if (unsaid != 0) log::info("{}{} more waits are as long", comm.sentence_prefix(), unsaid);
}

void end_waits(Communicator& comm, const ginWait& wait, ginResult_t code,
               const std::string& sentence) {
  ErrorRecord record;
  record.code = code;
  record.rank = comm.rank();
  record.peer = wait.peer;
  record.operation = static_cast<ginOperation>(wait.operation);
  record.offset = wait.index;
  if (set_errors(*wait.comm, record)) log::error("{}", sentence);
}

/// The part of a long wait that looks at the clock.
int look_at_clock(ginWait& wait, std::uint64_t seen) {
  const std::uint64_t now = device::now_ns();
  const device::Settings& settings = device::settings();
  const std::uint64_t interval = nanoseconds(settings.gin_wait_report);
  if (wait.started == 0) {
    wait.started = now;
    wait.next_report = now + interval;
    return 0;
  }
  auto& comm = *static_cast<Communicator*>(wait.comm->host);
  if (wait.limit != 0 && now - wait.started > wait.limit) return ginTimeout;
  if (interval != 0 && now >= wait.next_report) {
    wait.next_report = now + interval;  // a process may have been stopped for many
    report(comm, wait, seen, now, interval);
  }
  const std::uint64_t timeout = nanoseconds(settings.gin_wait_timeout);
  if (timeout != 0 && now - wait.started > timeout) {
    end_waits(comm, wait, ginTimeout,
              fmt::format("{}: value {}, awaited at least {}; GIN_WAIT_TIMEOUT ends all waits",
                          who_waits(comm, wait, now), seen, wait.awaited));
  } else if (const int dead = comm.dead_rank(); dead >= 0) {
    end_waits(comm, wait, ginRemoteError,
              fmt::format("{} and can't get it: {} {} is gone", who_waits(comm, wait, now),
                          comm.rank_word(), dead));
  }
  return 0;
}

}  // namespace
}  // namespace gimlet::gin

extern "C" void gin_exec_comm_wake_proxy(const ginDevComm* comm, std::uint32_t context) {
  static_cast<gimlet::gin::Proxies*>(comm->proxy)->wake(context);
}

extern "C" int gin_exec_comm_wait(ginWait* wait, std::uint64_t seen) {
  gin_exec_wait(wait->word, seen);
  if (++wait->looks % gimlet::gin::kLooksPerClock != 1) return 0;
  return gimlet::gin::look_at_clock(*wait, seen);
}
