// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/stack_fault.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "device/cpu/fiber_block.h"
#include "device/log.h"

namespace gimlet::device {
namespace {

// Handlers that stand behind ours may print a backtrace.
constexpr std::size_t kSignalStackBytes = 64 * 1024;

struct sigaction action_before;

/// A line made of nothing that a signal handler may not call; what does not fit is cut.
class HandlerText {
 public:
  HandlerText& operator<<(std::string_view part) {
    const std::size_t count = std::min(part.size(), text_.size() - size_);
    std::copy_n(part.data(), count, text_.data() + size_);
    size_ += count;
    return *this;
  }
  HandlerText& operator<<(std::uint64_t number) {
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
  }
  HandlerText& operator<<(const gin_exec_dim& d) {
    return *this << "(" << d.x << "," << d.y << "," << d.z << ")";
  }
  std::string_view text() const { return {text_.data(), size_}; }

 private:
  HandlerText& operator<<(unsigned number) { return *this << std::uint64_t{number}; }

  std::array<char, 768> text_;
  std::size_t size_ = 0;
};

/// The fiber of this system thread if `address` lies in the guard pages below its stack.
const Fiber* overflown_fiber(const void* address) {
  const DeviceThread* const thread = current_thread();
  if (thread == nullptr || !thread->is_fiber) return nullptr;
  const auto* const fiber = static_cast<const Fiber*>(thread);
  const auto low = reinterpret_cast<std::uintptr_t>(fiber->low);
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  return place < low && place >= low - StackPool::kGuardBytes ? fiber : nullptr;
}

void say_full(const Fiber& fiber) {
  const auto bytes =
      static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&fiber) - fiber.low);
  HandlerText line;
  line << "kernel " << fiber.info.kernel << ", block " << fiber.info.block << ", thread "
       << fiber.info.thread << ": its stack of " << bytes
       << " bytes is full; GIN_STACK_SIZE makes the stacks of kernels larger";
  log::write_in_handler(log::Level::kError, line.text());
}

/// What was there before us meets the signal as if it had got it itself: the instruction that
/// faulted is executed once more, a signal that somebody sent is sent again.
void step_aside(int number, const siginfo_t& info) {
  ::sigaction(number, &action_before, nullptr);
  if (info.si_code <= 0) ::raise(number);
}

void on_fault(int number, siginfo_t* info, void* context) {
  if (const Fiber* const fiber = info->si_code > 0 ? overflown_fiber(info->si_addr) : nullptr) {
    say_full(*fiber);
    return step_aside(number, *info);
  }
  const bool has_function =
      (action_before.sa_flags & SA_SIGINFO) != 0 ||
      (action_before.sa_handler != SIG_DFL && action_before.sa_handler != SIG_IGN);
  // A handler may mend the fault and go on, so ours stays in place.
  if (!has_function) return step_aside(number, *info);
  ::pthread_sigmask(SIG_BLOCK, &action_before.sa_mask, nullptr);
  if ((action_before.sa_flags & SA_SIGINFO) != 0) {
    action_before.sa_sigaction(number, info, context);
  } else {
    action_before.sa_handler(number);
  }
}

}  // namespace

void report_stack_faults() {
  if (kSanitized) return;
  // Before ours is in place: it may be called at once.
  if (::sigaction(SIGSEGV, nullptr, &action_before) != 0) return;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, nullptr);
}

SignalStack::SignalStack() {
  stack_t known{};
  if (::sigaltstack(nullptr, &known) != 0 || (known.ss_flags & SS_DISABLE) == 0) return;
  const long least = ::sysconf(_SC_SIGSTKSZ);
  bytes_ = std::max(kSignalStackBytes, static_cast<std::size_t>(std::max(least, 0L)));
  void* const mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED) return;
  memory_ = mapped;
  const stack_t own{memory_, 0, bytes_};
  ::sigaltstack(&own, nullptr);
}

SignalStack::~SignalStack() {
  if (memory_ == nullptr) return;
  const stack_t none{nullptr, SS_DISABLE, 0};
  ::sigaltstack(&none, nullptr);
  ::munmap(memory_, bytes_);
}

}  // namespace gimlet::device
