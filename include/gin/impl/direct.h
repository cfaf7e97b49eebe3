// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_DIRECT_H
#define GIMLET_GIN_IMPL_DIRECT_H

#include "gin/action.h"
#include "gin/impl/copy.h"
#include "gin/impl/fault.h"
#include "gin/team.h"
#include "gin/window.h"

/// The direct path: peers whose memory loads and stores reach.
///
/// Order. The threads of a coop copy, the coop synchronises, and one thread adds to the signal with
/// release: releases are cumulative, so the add publishes the whole payload, and every earlier put
/// of its lane that happens before it. The acquire of a wait or read of that signal takes it. So
/// weak and strong signals of puts cost the same here; a weak signal without payload need not
/// release at all, a strong one must. Nothing is outstanding when a call returns.
namespace gin {
namespace impl {

GIN_DEVICE_INLINE void fault_of(ginDevComm const& comm, ginOperation operation,
                                ginFaultReason reason, int peer, int64_t value, uint64_t bytes,
                                uint64_t allowed) {
  struct ginFault fault = {};
  fault.operation = operation;
  fault.reason = reason;
  fault.value = value;
  fault.bytes = bytes;
  fault.allowed = allowed;
  fault.peer = peer;
  report_fault(comm, fault);
  has_failed(comm);  // now it has: does it trap?
}

/// World rank of a member of a team, or -1 after a report.
GIN_DEVICE_INLINE int world_rank(ginDevComm const& comm, ginOperation operation, ginTeam_t team,
                                 int peer) {
  const int world = ginTeamRankToWorld(comm, team, peer);
  if (peer < 0 || peer >= team.nRanks || world < 0 || world >= comm.nRanks) {
    fault_of(comm, operation, ginFaultPeer, -1, peer, 0, static_cast<uint64_t>(team.nRanks));
    return -1;
  }
  if (comm.peerSlots[world] == GIN_NO_SLOT) {
    fault_of(comm, operation, ginFaultUnconnected, world, world, 0, 0);
    return -1;
  }
  return world;
}

/// A handle is an address in the table; nothing else is looked at before that is sure.
GIN_DEVICE_INLINE bool is_window(ginDevComm const& comm, ginWindow_t window) {
  const uintptr_t offset =
      reinterpret_cast<uintptr_t>(window) - reinterpret_cast<uintptr_t>(comm.windowTable);
  return offset / sizeof(ginWindowEntry) < comm.windowCapacity &&
         offset % sizeof(ginWindowEntry) == 0 && window->live == GIN_WINDOW_LIVE;
}

/// Do operations on a connected rank take loads and stores?
GIN_DEVICE_INLINE bool is_direct(ginDevComm const& comm, int world) {
  return comm.peerSlots[world] < GIN_SLOT_BY_RING;
}

/// Address of [offset, offset + bytes) of the own part of a window, or null after a report.
GIN_DEVICE_INLINE char* resolve_own(ginDevComm const& comm, ginOperation operation,
                                    ginWindow_t window, uint64_t offset, uint64_t bytes) {
  if (!is_window(comm, window)) {
    fault_of(comm, operation, ginFaultWindow, comm.rank, 0, 0, 0);
    return nullptr;
  }
  if (offset > window->size || bytes > window->size - offset) {
    fault_of(comm, operation, ginFaultRange, comm.rank, static_cast<int64_t>(offset), bytes,
             window->size);
    return nullptr;
  }
  return window->base + offset;
}

/// Address of [offset, offset + bytes) of a direct peer's part of a window, or null after a report.
GIN_DEVICE_INLINE char* resolve(ginDevComm const& comm, ginOperation operation, int world,
                                ginWindow_t window, uint64_t offset, uint64_t bytes) {
  if (!is_window(comm, window)) {
    fault_of(comm, operation, ginFaultWindow, world, 0, 0, 0);
    return nullptr;
  }
  ginPeerMemory const& memory = window->peers[comm.peerSlots[world]];
  if (offset > memory.size || bytes > memory.size - offset) {
    fault_of(comm, operation, ginFaultRange, world, static_cast<int64_t>(offset), bytes,
             memory.size);
    return nullptr;
  }
  return memory.base + offset;
}

/// `address` as a word, or null after a report. Windows start at whole vectors, so the alignment of
/// the offset decides.
GIN_DEVICE_INLINE uint64_t* as_word(ginDevComm const& comm, ginOperation operation, int world,
                                    char* address, uint64_t offset) {
  if (address == nullptr) return nullptr;
  if (offset % sizeof(uint64_t) != 0) {
    fault_of(comm, operation, ginFaultAlignment, world, static_cast<int64_t>(offset), 8, 0);
    return nullptr;
  }
  return reinterpret_cast<uint64_t*>(address);
}

GIN_DEVICE_INLINE uint64_t* resolve_word(ginDevComm const& comm, ginOperation operation, int world,
                                         ginWindow_t window, uint64_t offset) {
  char* address = resolve(comm, operation, world, window, offset, sizeof(uint64_t));
  return as_word(comm, operation, world, address, offset);
}

GIN_DEVICE_INLINE uint64_t* resolve_own_word(ginDevComm const& comm, ginOperation operation,
                                             ginWindow_t window, uint64_t offset) {
  char* address = resolve_own(comm, operation, window, offset, sizeof(uint64_t));
  return as_word(comm, operation, comm.rank, address, offset);
}

/// A peer's resource memory: error word, signals, shadows, counters, resource buffers.
GIN_DEVICE_INLINE char* resources_of(ginDevComm const& comm, int world) {
  return comm.resourceWindow->peers[comm.peerSlots[world]].base;
}

/// The word of a signal that loads and stores raise; of a peer, and of this rank.
GIN_DEVICE_INLINE uint64_t* signal_word(ginDevComm const& comm, int world, uint32_t context,
                                        ginSignal_t signal) {
  char* signals = resources_of(comm, world) + comm.signalsOffset + context * comm.signalsPitch;
  return reinterpret_cast<uint64_t*>(signals) + signal;
}

GIN_DEVICE_INLINE uint64_t* own_signal_word(ginDevComm const& comm, uint32_t context,
                                            ginSignal_t signal) {
  char* signals = comm.resourceWindow->base + comm.signalsOffset + context * comm.signalsPitch;
  return reinterpret_cast<uint64_t*>(signals) + signal;
}

GIN_DEVICE_INLINE uint64_t* shadow_word(ginDevComm const& comm, uint32_t context,
                                        ginSignal_t signal) {
  char* shadows = comm.resourceWindow->base + comm.shadowsOffset + context * comm.signalsPitch;
  return reinterpret_cast<uint64_t*>(shadows) + signal;
}

GIN_DEVICE_INLINE uint64_t* counter_word(ginDevComm const& comm, uint32_t context,
                                         ginCounter_t counter) {
  char* counters = comm.resourceWindow->base + comm.countersOffset + context * comm.countersPitch;
  return reinterpret_cast<uint64_t*>(counters) + counter;
}

GIN_DEVICE_INLINE bool is_signal(ginDevComm const& comm, ginOperation operation,
                                 ginSignal_t signal) {
  if (signal < comm.ginSignalCount) return true;
  fault_of(comm, operation, ginFaultSignal, -1, signal, 0, comm.ginSignalCount);
  return false;
}

GIN_DEVICE_INLINE bool is_counter(ginDevComm const& comm, ginOperation operation,
                                  ginCounter_t counter) {
  if (counter < comm.ginCounterCount) return true;
  fault_of(comm, operation, ginFaultCounter, -1, counter, 0, comm.ginCounterCount);
  return false;
}

/// Any remote action, as data.
enum class SignalKind : uint8_t { kNone, kIndex, kVa };
struct SignalRequest {
  SignalKind kind;
  bool strong;
  ginWindow_t window; /* of a VA signal */
  uint64_t place;     /* index or offset */
  uint64_t value;
};

template <class Action>
GIN_DEVICE_INLINE SignalRequest index_request(bool strong, Action const& action, uint64_t value) {
  return {SignalKind::kIndex, strong, nullptr, action.signal, value};
}
template <class Action>
GIN_DEVICE_INLINE SignalRequest va_request(bool strong, Action const& action, uint64_t value) {
  return {SignalKind::kVa, strong, action.signalWindow, action.signalOffset, value};
}

GIN_DEVICE_INLINE SignalRequest lower(bool, None) {
  return {};
}
GIN_DEVICE_INLINE SignalRequest lower(bool, WeakSignalInc a) {
  return index_request(false, a, 1);
}
GIN_DEVICE_INLINE SignalRequest lower(bool, StrongSignalInc a) {
  return index_request(true, a, 1);
}
GIN_DEVICE_INLINE SignalRequest lower(bool, WeakSignalAdd a) {
  return index_request(false, a, a.value);
}
GIN_DEVICE_INLINE SignalRequest lower(bool, StrongSignalAdd a) {
  return index_request(true, a, a.value);
}
GIN_DEVICE_INLINE SignalRequest lower(bool, WeakVASignalInc a) {
  return va_request(false, a, 1);
}
GIN_DEVICE_INLINE SignalRequest lower(bool, StrongVASignalInc a) {
  return va_request(true, a, 1);
}
GIN_DEVICE_INLINE SignalRequest lower(bool, WeakVASignalAdd a) {
  return va_request(false, a, a.value);
}
GIN_DEVICE_INLINE SignalRequest lower(bool, StrongVASignalAdd a) {
  return va_request(true, a, a.value);
}
// The older names have the strength that the communicator was made with.
GIN_DEVICE_INLINE SignalRequest lower(bool strong, SignalInc a) {
  return index_request(strong, a, 1);
}
GIN_DEVICE_INLINE SignalRequest lower(bool strong, SignalAdd a) {
  return index_request(strong, a, a.value);
}
GIN_DEVICE_INLINE SignalRequest lower(bool strong, VASignalInc a) {
  return va_request(strong, a, 1);
}
GIN_DEVICE_INLINE SignalRequest lower(bool strong, VASignalAdd a) {
  return va_request(strong, a, a.value);
}

/// Any local action, as data.
struct CounterRequest {
  bool present;
  ginCounter_t counter;
};

GIN_DEVICE_INLINE CounterRequest lower_local(None) {
  return {};
}
GIN_DEVICE_INLINE CounterRequest lower_local(WeakCounterInc a) {
  return {true, a.counter};
}
GIN_DEVICE_INLINE CounterRequest lower_local(CounterInc a) {
  return {true, a.counter};
}

/// Word that a request raises on a world rank, or null after a report.
GIN_DEVICE_INLINE uint64_t* request_word(ginDevComm const& comm, ginOperation operation, int world,
                                         uint32_t context, SignalRequest const& request) {
  if (request.kind == SignalKind::kVa) {
    return resolve_word(comm, operation, world, request.window, request.place);
  }
  const ginSignal_t signal = static_cast<ginSignal_t>(request.place);
  if (!is_signal(comm, operation, signal)) return nullptr;
  return signal_word(comm, world, context, signal);
}

/// Order of a signal that no payload of its own goes with.
GIN_DEVICE_INLINE Order bare_signal_order(bool strong, thread_scope given, thread_scope required) {
  if (strong) return kStrongSignalOrder;
  // A wider scope is a smaller number: what the caller has released already need not be again.
  return given <= required ? Order::kRelaxed : Order::kRelease;
}

/// Writes a value of at most 8 bytes, in one access where its address allows.
template <class T>
GIN_DEVICE_INLINE void store_value(char* address, T const& value) {
  static_assert(sizeof(T) <= 8, "putValue takes values of at most 8 bytes");
  const bool aligned = reinterpret_cast<uintptr_t>(address) % sizeof(T) == 0;
  if (aligned && sizeof(T) == 8) {
    store_as<uint64_t>(address, &value);
  } else if (aligned && sizeof(T) == 4) {
    store_as<uint32_t>(address, &value);
  } else if (aligned && sizeof(T) == 2) {
    store_as<uint16_t>(address, &value);
  } else if (sizeof(T) == 1) {
    store_as<uint8_t>(address, &value);
  } else {
    memcpy(address, &value, sizeof(T));
  }
}

}  // namespace impl
}  // namespace gin

#endif
