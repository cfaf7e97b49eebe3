// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/helper.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "device/log.h"
#include "pgas/pe.h"

namespace gimlet::pgas {
namespace {

/// Not the private form: peers of the node ring through their own mapping.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  return ::syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

/// Signals belong to the program's threads.
void block_signals(sigset_t& before) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
}

}  // namespace

void ring_doorbell(ControlArea& area) {
  // Release: what the ringer asked for (transport_wanted) is seen by the helper that reads the new
  // count with acquire.
  area.doorbell.fetch_add(1, std::memory_order_release);
  futex(area.doorbell, FUTEX_WAKE, 1);
}

Helper::~Helper() {
  stop();
}

Status Helper::start() {
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return fail_errno(errno, "eventfd for the helper thread failed");
  sigset_t before;
  block_signals(before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return fail_errno(error.code().value(), "the helper thread can't be started");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_setname_np(thread_.native_handle(), "gimlet-helper");
  return {};
}

void Helper::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  notice_transport();
  thread_.join();
}

void Helper::notice_transport() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  ring_doorbell(pe_.own_control());
}

void Helper::run() {
  while (!stopping_.load(std::memory_order_acquire)) {
    if (pe_.started_transport() != nullptr) {
      serve_transport();
    } else {
      serve_doorbell();
    }
  }
}

void Helper::serve_doorbell() {
  ControlArea& area = pe_.own_control();
  const std::uint32_t seen = area.doorbell.load(std::memory_order_acquire);
  if (stopping_.load(std::memory_order_acquire) || pe_.started_transport() != nullptr) return;
  if (area.transport_wanted.load(std::memory_order_acquire) != 0 &&
      area.transport_state.load(std::memory_order_acquire) == ControlArea::kCold) {
    // The failure is in transport_state too: the peer that asked reports it, this PE may never need
    // UCX itself.
    if (const Status status = pe_.start_transport(); !status.ok())
      log::warning("{}", status.message());
    return;
  }
  futex(area.doorbell, FUTEX_WAIT, seen);
}

void Helper::serve_transport() {
  Transport& transport = *pe_.started_transport();
  while (transport.progress()) {
    if (stopping_.load(std::memory_order_acquire)) return;
  }
  if (!transport.arm()) return;
  pollfd entries[2] = {{transport.event_fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  ::poll(entries, 2, -1);
  if (entries[1].revents != 0) {
    std::uint64_t count;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
  }
}

}  // namespace gimlet::pgas
