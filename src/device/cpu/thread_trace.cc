// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/thread_trace.h"

#include <execinfo.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "device/cpu/device_thread.h"
#include "device/cpu/kernel_name.h"
#include "device/cpu/sanitizer.h"

namespace gimlet::device {
namespace {

constexpr std::size_t kMostFrames = 48;
constexpr std::size_t kShownFrames = 16;
constexpr long kAnswerSeconds = 1;

/// Workers block the signals that programs use for themselves, and leave this one to profilers;
/// ours carries the address of the question, theirs does not.
constexpr int kSignal = SIGPROF;

struct Question {
  const DeviceThread* expected = nullptr;
  std::array<void*, kMostFrames> frames{};
  int count = 0;
  const void* interrupted = nullptr;
  sem_t answered{};
};

constinit Question question;
struct sigaction action_before;

const void* program_counter([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
  return reinterpret_cast<const void*>(machine.gregs[REG_RIP]);
#else
  return nullptr;
#endif
}

void answer(const void* context) {
  const int error = errno;
  question.count = 0;
  question.interrupted = program_counter(context);
  if (current_thread() == question.expected)
    question.count = ::backtrace(question.frames.data(), static_cast<int>(kMostFrames));
  ::sem_post(&question.answered);
  errno = error;
}

void on_signal(int number, siginfo_t* info, void* context) {
  if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == &question) return answer(context);
  if ((action_before.sa_flags & SA_SIGINFO) != 0) {
    action_before.sa_sigaction(number, info, context);
  } else if (action_before.sa_handler != SIG_DFL && action_before.sa_handler != SIG_IGN) {
    action_before.sa_handler(number);
  }
}

/// The handler stands only as long as a question is open: a profiler finds the signal as it was.
bool install() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigfillset(&action.sa_mask);
  return ::sigaction(kSignal, nullptr, &action_before) == 0 &&
         ::sigaction(kSignal, &action, nullptr) == 0;
}

void remove() {
  struct sigaction current {};
  if (::sigaction(kSignal, nullptr, &current) == 0 && current.sa_sigaction == on_signal)
    ::sigaction(kSignal, &action_before, nullptr);
}

bool is_answered() {
  timespec until;
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += kAnswerSeconds;
  while (::sem_timedwait(&question.answered, &until) != 0)
    if (errno != EINTR) return false;
  return true;
}

bool ask(pthread_t carrier, const DeviceThread& expected) {
  static bool unanswered = false;
  if (unanswered || !install()) return false;
  question.expected = &expected;
  ::sem_init(&question.answered, 0, 0);
  if (::pthread_sigqueue(carrier, kSignal, {.sival_ptr = &question}) != 0) {
    remove();
    return false;
  }
  // Without an answer the handler must stay: the signal is still under way.
  unanswered = !is_answered();
  if (!unanswered) remove();
  return !unanswered;
}

}  // namespace

Trace take_trace(pthread_t carrier, const DeviceThread& expected) {
  // The thread sanitizer delivers signals only when the thread calls something.
  if (GIMLET_TSAN != 0) return {};
  // The first call loads the unwinder, which a handler must not; later ones take no lock.
  void* ignored = nullptr;
  (void)::backtrace(&ignored, 1);
  if (!ask(carrier, expected)) return {};
  const auto end = question.frames.begin() + question.count;
  // Above the interrupted function are those of the handler.
  const auto first = std::find(question.frames.begin(), end, question.interrupted);
  return Trace(first == end ? question.frames.begin() : first, end);
}

std::vector<std::string> describe(const Trace& trace) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < trace.size() && i < kShownFrames; ++i) {
    // A return address may lie behind the function that made the call.
    std::string place = code_place(static_cast<const char*>(trace[i]) - (i == 0 ? 0 : 1));
    if (place.starts_with("gimlet::device::run_kernel")) break;
    lines.push_back(std::move(place));
  }
  return lines;
}

}  // namespace gimlet::device
