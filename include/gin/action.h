// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_ACTION_H
#define GIMLET_GIN_ACTION_H

#include "gin/dev_comm.h"

/// What an operation of gin::Context does besides moving data: plain aggregates, built with {...}.
///
/// Remote actions raise a 64-bit signal of the destination after the data of their own put is
/// visible there. Weak: that says nothing of other puts. Strong: everything this rank put earlier
/// through the same context to the same peer is visible too. Index signals belong to a context; VA
/// signals are 8-byte aligned words of a window.
namespace gin {

struct None {};

struct WeakSignalInc {
  ginSignal_t signal;
};
struct StrongSignalInc {
  ginSignal_t signal;
};
struct WeakSignalAdd {
  ginSignal_t signal;
  uint64_t value;
};
struct StrongSignalAdd {
  ginSignal_t signal;
  uint64_t value;
};
struct WeakVASignalInc {
  ginWindow_t signalWindow;
  size_t signalOffset;
};
struct StrongVASignalInc {
  ginWindow_t signalWindow;
  size_t signalOffset;
};
struct WeakVASignalAdd {
  ginWindow_t signalWindow;
  size_t signalOffset;
  uint64_t value;
};
struct StrongVASignalAdd {
  ginWindow_t signalWindow;
  size_t signalOffset;
  uint64_t value;
};

/// Older names: strong when ginDevCommRequirements::ginStrongSignalsRequired was set, else weak.
struct SignalInc {
  ginSignal_t signal;
};
struct SignalAdd {
  ginSignal_t signal;
  uint64_t value;
};
struct VASignalInc {
  ginWindow_t signalWindow;
  size_t signalOffset;
};
struct VASignalAdd {
  ginWindow_t signalWindow;
  size_t signalOffset;
  uint64_t value;
};

/// Local actions: raise a counter of the calling rank by one when the source of the put may be
/// reused.
struct WeakCounterInc {
  ginCounter_t counter;
};
struct CounterInc {
  ginCounter_t counter;
};

/// What an atomic operation does to a word. The values are those that travel between ranks.
enum class AtomicOp : uint8_t {
  Fetch = 0,
  Set = 1,
  Swap = 2,
  CompareSwap = 3,
  Add = 4,
  And = 5,
  Or = 6,
  Xor = 7
};

/// Lends 64 bytes of block-shared memory to an operation.
struct DescriptorSmem {
  ginDescriptorSmem* descriptor;
};

/// Physical memory behind the windows of an operation.
struct SegmentDevice {};
struct SegmentMixed {};
struct SegmentHostNuma {};

}  // namespace gin

#endif
