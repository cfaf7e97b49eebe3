// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_DEVICE_THREAD_H
#define GIMLET_DEVICE_CPU_DEVICE_THREAD_H

#include <atomic>
#include <cstdint>

#include "device/clock.h"
#include "gin/impl/exec.h"

namespace gimlet::device {

struct Block;

/// What a thread waits for, written by the thread and read by the monitor.
class WaitNote {
 public:
  struct Copy {
    gin_exec_note note{};
    std::uint64_t since_ns = 0;
  };

  void set(const gin_exec_note& note) {
    const std::uint64_t since = since_ns_.load(std::memory_order_relaxed);
    const bool same = since != 0 && call_.load(std::memory_order_relaxed) == note.call &&
                      object_.load(std::memory_order_relaxed) == note.object &&
                      index_.load(std::memory_order_relaxed) == note.index &&
                      awaited_.load(std::memory_order_relaxed) == note.awaited;
    if (same) return;
    clear();
    call_.store(note.call, std::memory_order_release);
    object_.store(note.object, std::memory_order_release);
    index_.store(note.index, std::memory_order_release);
    awaited_.store(note.awaited, std::memory_order_release);
    rank_.store(note.rank, std::memory_order_release);
    peer_.store(note.peer, std::memory_order_release);
    // copy() takes this time first and last: a note that changes meanwhile shows as another time
    // or, since the stores above release it, as the zero of clear().
    since_ns_.store(now_ns(), std::memory_order_release);
  }
  void clear() {
    if (since_ns_.load(std::memory_order_relaxed) == 0) return;
    since_ns_.store(0, std::memory_order_relaxed);
    reported_.store(false, std::memory_order_relaxed);
  }

  /// False if there is none or it changes right now.
  bool copy(Copy& out) const {
    out.since_ns = since_ns_.load(std::memory_order_acquire);
    if (out.since_ns == 0) return false;
    out.note.call = call_.load(std::memory_order_acquire);
    out.note.object = object_.load(std::memory_order_acquire);
    out.note.index = index_.load(std::memory_order_acquire);
    out.note.awaited = awaited_.load(std::memory_order_acquire);
    out.note.rank = rank_.load(std::memory_order_acquire);
    out.note.peer = peer_.load(std::memory_order_acquire);
    return since_ns_.load(std::memory_order_relaxed) == out.since_ns;
  }
  bool reported() const { return reported_.load(std::memory_order_relaxed); }
  void mark_reported() { reported_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> since_ns_{0};  // 0: no note
  std::atomic<const char*> call_{nullptr};
  std::atomic<const char*> object_{nullptr};
  std::atomic<std::uint64_t> index_{0};
  std::atomic<std::uint64_t> awaited_{0};
  std::atomic<int> rank_{-1};
  std::atomic<int> peer_{-1};
  std::atomic<bool> reported_{false};
};

/// What a thread saw the last time, to tell a spin from progress.
struct Sight {
  const void* word = nullptr;
  std::atomic<std::uint64_t> seen{0};  // the monitor reads it

  /// True if this is another word or another value than the last time.
  bool renew(const void* new_word, std::uint64_t new_seen) {
    if (word == new_word && seen.load(std::memory_order_relaxed) == new_seen) return false;
    set(new_word, new_seen);
    return true;
  }
  void set(const void* new_word, std::uint64_t new_seen) {
    word = new_word;
    seen.store(new_seen, std::memory_order_relaxed);
  }
};

/// One thread of a kernel, in either mode. What a hand-over needs comes first, in one cache line.
struct DeviceThread {
  void* context = nullptr;  // where a fiber goes on
  Block* block = nullptr;
  Sight wait;                    // of wait steps
  unsigned rank = 0;             // as in info
  std::uint32_t operations = 0;  // atomic operations that did not hand over
  std::uint32_t fruitless = 0;   // wait steps in a row without progress (system threads only)
  bool is_fiber = false;

  gin_exec_thread info{};
  Sight look;                     // of other atomic operations
  std::uint64_t resumed_tsc = 0;  // when the last look handed over and came back
  WaitNote note;
};

/// Where each system thread keeps the device thread that runs on it. Initial-exec: one load, no
/// call, in a library that is loaded with the program. Atomic, because the monitor reads it.
extern thread_local constinit std::atomic<DeviceThread*> current_slot
    [[gnu::tls_model("initial-exec")]];

/// The device thread that runs on this system thread, or nullptr. Only for functions that ask once,
/// before anything hands over: the compiler may keep the slot's address, and a fiber may come back
/// on another system thread. Nothing that a kernel calls may be inlined into one that hands over.
inline DeviceThread* current_thread() {
  return current_slot.load(std::memory_order_relaxed);
}

}  // namespace gimlet::device

#endif
