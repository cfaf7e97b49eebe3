// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_SANITIZER_H
#define GIMLET_DEVICE_CPU_SANITIZER_H

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define GIMLET_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GIMLET_ASAN 1
#endif
#endif
#ifndef GIMLET_ASAN
#define GIMLET_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__)
#define GIMLET_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GIMLET_TSAN 1
#endif
#endif
#ifndef GIMLET_TSAN
#define GIMLET_TSAN 0
#endif

#if GIMLET_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if GIMLET_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}
#endif

/// What the sanitizers must be told about stacks that change under a system thread and about
/// barriers. Everything here is empty in a plain build.
namespace gimlet::device {

inline constexpr bool kSanitized = GIMLET_ASAN != 0 || GIMLET_TSAN != 0;

/// A stack as the sanitizers see it.
struct SanitizedStack {
#if GIMLET_ASAN
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* fake_stack = nullptr;
#endif
#if GIMLET_TSAN
  void* fiber = nullptr;
#endif

  /// A stack that some fiber may have left without unwinding gets a new one.
  void start_fiber([[maybe_unused]] std::byte* stack, [[maybe_unused]] std::size_t stack_bytes) {
#if GIMLET_ASAN
    bottom = stack;
    bytes = stack_bytes;
    fake_stack = nullptr;
    __asan_unpoison_memory_region(stack, stack_bytes);
#endif
#if GIMLET_TSAN
    if (fiber == nullptr) fiber = __tsan_create_fiber(0);
#endif
  }

  /// Just before the jump from this stack to `to`; `last` when nobody will ever come back.
  void leave_for([[maybe_unused]] SanitizedStack& to, [[maybe_unused]] bool last = false) {
#if GIMLET_ASAN
    __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack, to.bottom, to.bytes);
#endif
#if GIMLET_TSAN
    __tsan_switch_to_fiber(to.fiber, 0);
#endif
  }

  /// First thing on this stack after a jump.
  void arrive() {
#if GIMLET_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
    fake_stack = nullptr;
#endif
  }
};

inline void poison([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#if GIMLET_ASAN
  __asan_poison_memory_region(memory, bytes);
#endif
}
inline void unpoison([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#if GIMLET_ASAN
  __asan_unpoison_memory_region(memory, bytes);
#endif
}

/// The thread sanitizer overlooks what happens in between: the executor's own locking must not
/// order, in its eyes, threads of a kernel that no barrier has ordered.
class UnseenByTsan {
 public:
#if GIMLET_TSAN
  UnseenByTsan() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  }
  ~UnseenByTsan() {
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  UnseenByTsan() {}
  ~UnseenByTsan() {}
#endif
  UnseenByTsan(const UnseenByTsan&) = delete;
  UnseenByTsan& operator=(const UnseenByTsan&) = delete;
};

/// Barriers, for the thread sanitizer: whoever passes tsan_acquire(p) is ordered behind everybody
/// who passed tsan_release(p).
inline void tsan_release([[maybe_unused]] void* place) {
#if GIMLET_TSAN
  __tsan_release(place);
#endif
}
inline void tsan_acquire([[maybe_unused]] void* place) {
#if GIMLET_TSAN
  __tsan_acquire(place);
#endif
}

}  // namespace gimlet::device

#endif
