// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_STACK_FAULT_H
#define GIMLET_DEVICE_CPU_STACK_FAULT_H

#include <cstddef>

namespace gimlet::device {

/// From now on a fiber that runs into its guard pages says who it is before the process ends. Other
/// faults, and this one after the sentence, go to whatever handled SIGSEGV before. Nothing in a
/// sanitized build: the sanitizers name such a fault themselves.
void report_stack_faults();

/// A stack for signal handlers of this system thread, as long as this lives; a fiber's own has no
/// room left when it matters. None if the thread has one already.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace gimlet::device

#endif
