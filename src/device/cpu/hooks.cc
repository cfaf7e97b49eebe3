// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/hooks.h"

#include <fmt/format.h>
#include <sched.h>
#include <x86intrin.h>

#include <cstdlib>
#include <new>
#include <string>

#include "device/cpu/executor.h"
#include "device/cpu/fiber_block.h"
#include "device/cpu/kernel_name.h"
#include "device/cpu/thread_run.h"
#include "device/log.h"
#include "gin/impl/exec.h"
#include "gin/result.h"

namespace gimlet::device {
namespace {

/// Atomic operations in a row before a thread hands over although it does not seem to wait.
constexpr std::uint32_t kOperationsPerTurn = 32;
/// A thread that has run longer since its last look, about 0.3 us, was not just spinning.
constexpr std::uint64_t kSpinTicks = 1000;

thread_local int device_number = 0;

/// Calls `run` with the Fiber or SystemThread that `thread` is.
template <class Run>
decltype(auto) as_it_is(DeviceThread& thread, Run run) {
  return thread.is_fiber ? run(static_cast<Fiber&>(thread))
                         : run(static_cast<SystemThread&>(thread));
}

void step(DeviceThread& thread, bool moved) {
  thread.operations = 0;
  as_it_is(thread, [moved](auto& self) { self.owner().wait_step(self, moved); });
}

DeviceThread& this_thread(const char* what) {
  DeviceThread* const thread = current_thread();
  if (thread != nullptr) [[likely]]
    return *thread;
  log::error("{} was used by a host thread; it belongs into a kernel that gin::launch runs", what);
  std::abort();
}

/// `sentence` makes the text: it must be gone before the thread is, which nobody unwinds.
template <class Sentence>
[[noreturn]] void end_launch(DeviceThread& thread, int result, Sentence sentence) {
  thread.block->launch->fail(result, sentence());
  as_it_is(thread, [](auto& self) { self.owner().abandon(self); });
  std::abort();
}

void check_mask(DeviceThread& thread, std::uint32_t mask) {
  if ((mask >> (thread.info.rank % kWarpSize) & 1) != 0) [[likely]]
    return;
  end_launch(thread, ginInvalidArgument, [&] {
    return fmt::format("{} synchronises its warp with mask {:#x}, in which it is not itself",
                       where(thread), mask);
  });
}

int refuse(int result, const std::string& sentence) {
  log::error("{}", sentence);
  return result;
}

int result_of(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return ginSuccess;
    case Code::kInvalidArgument:
      return refuse(ginInvalidArgument, status.message());
    case Code::kInvalidUsage:
      return refuse(ginInvalidUsage, status.message());
    default:
      return refuse(ginSystemError, status.message());
  }
}

/// Runs `call` with the executor; no exception leaves it.
template <class Call>
int guarded(const char* what, Call call) {
  if (current_thread() != nullptr)
    return refuse(ginInvalidUsage,
                  fmt::format("{} was called by a kernel; it belongs to host code", what));
  try {
    Executor* const executor = Executor::instance();
    if (executor == nullptr) {
      return refuse(ginInvalidUsage,
                    fmt::format("{} was called by a forked child: kernels run in the process that "
                                "launched the first one",
                                what));
    }
    return call(*executor);
  } catch (const std::exception& error) {
    return refuse(ginSystemError, fmt::format("{} failed: {}", what, error.what()));
  }
}

Stream* as_stream(gin_exec_stream* stream) {
  return reinterpret_cast<Stream*>(stream);
}

}  // namespace

bool yield_device_thread(bool first_look) {
  DeviceThread* const thread = current_thread();
  if (thread == nullptr) return false;
  step(*thread, first_look);
  return true;
}

void wake_device_threads() {
  if (Executor* const executor = Executor::existing()) executor->wake_sleepers();
}

int current_device() {
  return device_number;
}

}  // namespace gimlet::device

using namespace gimlet::device;

extern "C" {

const gin_exec_thread* gin_exec_here(void) {
  return &this_thread("threadIdx, blockIdx or a function that needs them").info;
}

int gin_exec_wait(const void* word, uint64_t seen) {
  DeviceThread* const thread = current_thread();
  if (thread == nullptr) {
    ::sched_yield();
    return 0;
  }
  step(*thread, thread->wait.renew(word, seen));
  return 1;
}

int gin_exec_yield(void) {
  DeviceThread* const thread = current_thread();
  if (thread == nullptr) {
    ::sched_yield();
    return 0;
  }
  step(*thread, false);
  return 1;
}

void gin_exec_look(const void* word, uint64_t seen) {
  DeviceThread* const thread = current_thread();
  if (thread == nullptr) return;
  if (thread->look.renew(word, seen)) {
    if (++thread->operations >= kOperationsPerTurn) step(*thread, true);
    return;
  }
  const bool worked = __rdtsc() - thread->resumed_tsc > kSpinTicks;
  step(*thread, worked);
  thread->resumed_tsc = __rdtsc();
}

void gin_exec_touch(void) {
  DeviceThread* const thread = current_thread();
  if (thread != nullptr && ++thread->operations >= kOperationsPerTurn) step(*thread, true);
}

void gin_exec_set_note(const gin_exec_note* note) {
  DeviceThread* const thread = current_thread();
  if (thread == nullptr) return;
  if (note == nullptr) {
    thread->note.clear();
  } else {
    thread->note.set(*note);
  }
}

void gin_exec_wake(void) {
  gimlet::device::wake_device_threads();
}

void gin_exec_sync_block(void) {
  as_it_is(this_thread("__syncthreads"), [](auto& self) { self.owner().sync_block(self, false); });
}

int gin_exec_sync_block_count(int predicate) {
  return as_it_is(this_thread("__syncthreads_count"), [predicate](auto& self) {
    self.owner().sync_block(self, predicate != 0);
    return self.owner().counted();
  });
}

void gin_exec_sync_warp(uint32_t mask) {
  DeviceThread& thread = this_thread("__syncwarp");
  check_mask(thread, mask);
  as_it_is(thread, [mask](auto& self) { self.owner().sync_warp(self, mask); });
}

void gin_exec_sync_named(unsigned id, unsigned threads) {
  DeviceThread& thread = this_thread("a named barrier");
  const unsigned most = (thread.info.size + kWarpSize - 1) / kWarpSize * kWarpSize;
  if (id >= kNamedBarriers || threads == 0 || threads % kWarpSize != 0 || threads > most) {
    end_launch(thread, ginInvalidArgument, [&] {
      return fmt::format(
          "{} uses barrier {} of {} threads; allowed are barriers 0 to {} of whole "
          "warps, here 32 to {} threads",
          where(thread), id, threads, kNamedBarriers - 1, most);
    });
  }
  as_it_is(thread, [&](auto& self) {
    if (self.owner().named_conflict(id, threads)) {
      end_launch(thread, ginInvalidUsage, [&] {
        return fmt::format(
            "{} uses barrier {} with {} threads while others wait there for "
            "another number",
            where(thread), id, threads);
      });
    }
    self.owner().sync_named(self, id, threads);
  });
}

uint64_t gin_exec_shuffle(uint32_t mask, uint64_t value, unsigned source) {
  DeviceThread& thread = this_thread("a warp shuffle");
  check_mask(thread, mask);
  return as_it_is(thread, [&](auto& self) {
    return self.owner().exchange(self, mask, BlockSync::Exchange::kShuffle, value, source);
  });
}

uint32_t gin_exec_ballot(uint32_t mask, int predicate) {
  DeviceThread& thread = this_thread("a warp vote");
  check_mask(thread, mask);
  return static_cast<uint32_t>(as_it_is(thread, [&](auto& self) {
    return self.owner().exchange(self, mask, BlockSync::Exchange::kBallot, predicate != 0, 0);
  }));
}

void* gin_exec_shared(const void* site, size_t bytes, size_t align) {
  DeviceThread& thread = this_thread("GIN_SHARED");
  void* const object =
      as_it_is(thread, [&](auto& self) { return self.owner().shared_object(site, bytes, align); });
  if (object != nullptr) return object;
  end_launch(thread, ginInvalidArgument, [&] {
    return fmt::format(
        "{} declares {} more bytes of block-shared memory aligned to {}; allowed "
        "are {} bytes a block, aligned to at most {}",
        where(thread), bytes, align, SharedArena::kStaticBytes, SharedArena::kAlign);
  });
}

void* gin_exec_dynamic_shared(void) {
  return this_thread("GIN_DYNAMIC_SHARED").block->shared.dynamic();
}

void gin_exec_fail(int result, const char* sentence) {
  DeviceThread& thread = this_thread(sentence == nullptr ? "the end of a kernel" : sentence);
  end_launch(thread, result, [&] {
    if (sentence == nullptr) return std::string();
    return fmt::format("{}: {}", where(thread), sentence);
  });
}

int gin_exec_launch(const gin_exec_launch_config* config, const gin_exec_kernel* kernel) {
  gin_exec_kernel owned = *kernel;
  bool taken = false;
  const int result = guarded("gin::launch", [&](Executor& executor) {
    owned.name = kernel_name(kernel->function, kernel->name);
    taken = true;
    return result_of(executor.launch(*config, owned));
  });
  if (!taken && owned.destroy != nullptr) owned.destroy(owned.args);
  return result;
}

int gin_exec_stream_create(gin_exec_stream** stream) {
  return guarded("gin::streamCreate", [&](Executor& executor) {
    *stream = reinterpret_cast<gin_exec_stream*>(executor.create_stream(device_number));
    return static_cast<int>(ginSuccess);
  });
}

int gin_exec_stream_destroy(gin_exec_stream* stream) {
  return guarded("gin::streamDestroy", [&](Executor& executor) {
    return result_of(executor.destroy_stream(as_stream(stream)));
  });
}

int gin_exec_stream_synchronize(gin_exec_stream* stream) {
  return guarded("gin::streamSynchronize", [&](Executor& executor) {
    int error = ginSuccess;
    const int result = result_of(executor.synchronize(as_stream(stream), error));
    return result != ginSuccess ? result : error;
  });
}

int gin_exec_device_synchronize(void) {
  return guarded("gin::deviceSynchronize", [&](Executor& executor) {
    int error = ginSuccess;
    executor.synchronize_device(device_number, error);
    return error;
  });
}

int gin_exec_set_device(int device) {
  if (device < 0) {
    return refuse(ginInvalidArgument,
                  fmt::format("gin::setDevice: the device is {}; allowed is 0 and more", device));
  }
  device_number = device;
  return ginSuccess;
}

}  // extern "C"
