// SPDX-License-Identifier: BSD-3-Clause
// launch: none
//
// What goes wrong in a kernel gives one sentence, ends every wait, and is told by
// ginCommGetAsyncError() on all ranks. Ranks are two threads of this process.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "../captured_stderr.h"
#include "gin_kernels.h"
#include "gin_ranks.h"

namespace {

using gin_test::async_error;
using gin_test::must;
using gin_test::Rank;
using gin_test::Ring;
using gin_test::run_kernel;
using gin_test::TestWindow;

// Each kernel makes one mistake on rank 0, while rank 1 waits for a signal that never comes. `bad`
// picks the mistake.
enum Mistake {
  kPastEnd,
  kHugeOffset,
  kSourcePastEnd,
  kUnknownPeer,
  kNegativePeer,
  kBadWindow,
  kNullWindow,
  kBadContext,
  kBadSignal,
  kBadCounter,
  kMisaligned,
  kBadBarrier,
  kGetPastEnd,
  kValuePastEnd,
  kAtomicPastEnd,
  kAtomicMisaligned,
  kMistakes
};

__global__ void blunder(Ring ring, int bad, uint64_t* turns) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, 0);
  const ginTeam_t world = gin_test::world_of(ring);
  if (ring.comm.rank == 1) {
    gin.waitSignal(block, 0, 1000);  // ended by the other rank's mistake
    return;
  }
  switch (bad) {
    case kPastEnd:
      gin.put(world, 1, ring.dest, 4000, ring.source, 0, 97, gin::WeakSignalInc{0}, gin::None{},
              block);
      break;
    case kHugeOffset:
      gin.put(world, 1, ring.dest, ~size_t{0} - 7, ring.source, 0, 16, gin::WeakSignalInc{0});
      break;
    case kSourcePastEnd:
      gin.put(world, 1, ring.dest, 0, ring.source, 4096, 1);
      break;
    case kUnknownPeer:
      gin.put(world, 9, ring.dest, 0, ring.source, 0, 8);
      break;
    case kNegativePeer:
      gin.signal(world, -1, gin::StrongSignalInc{0});
      break;
    case kBadWindow:
      gin.put(world, 1, reinterpret_cast<ginWindow_t>(0x1234560), 0, ring.source, 0, 8);
      break;
    case kNullWindow:
      gin.get(world, 1, nullptr, 0, ring.source, 0, 8);
      break;
    case kBadContext: {
      const gin::Context other(ring.comm, 7);
      other.signal(world, 1, gin::StrongSignalInc{0});
      break;
    }
    case kBadSignal:
      gin.put(world, 1, ring.dest, 0, ring.source, 0, 8, gin::WeakSignalInc{500});
      break;
    case kBadCounter:
      gin.put(world, 1, ring.dest, 0, ring.source, 0, 8, gin::None{}, gin::CounterInc{3});
      break;
    case kMisaligned:
      gin.signal(world, 1, gin::StrongVASignalInc{ring.dest, 12});
      break;
    case kBadBarrier: {
      gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, 5);
      barrier.sync(block, gin::memory_order_acq_rel);
      break;
    }
    case kGetPastEnd:
      gin.get(world, 1, ring.dest, 4090, ring.source, 0, 7, block);
      break;
    case kValuePastEnd:
      gin.putValue(world, 1, ring.dest, 4092, uint64_t{1});
      break;
    case kAtomicPastEnd:
      gin.atomic(gin::AtomicOp::Add, world, 1, ring.dest, 4096, 1);
      break;
    case kAtomicMisaligned:
      gin.atomicFetch(gin::AtomicOp::Add, world, 1, ring.dest, 12, uint64_t{1});
      break;
  }
  // Waits and operations do nothing any more.
  gin.waitSignal(block, 0, 1000);
  gin.put(world, 1, ring.dest, 0, ring.source, 0, 8, gin::WeakSignalInc{0}, gin::None{}, block);
  if (threadIdx.x == 0) *turns = 1;
}

const char* expected_sentence(int bad) {
  switch (bad) {
    case kPastEnd:
      return "put: 97 bytes at offset 4000 are not all in the window of rank 1, which has 4096 "
             "bytes";
    case kHugeOffset:
      return "put: 16 bytes at offset 18446744073709551608 are not all in the window of rank 1, "
             "which has 4096 bytes";
    case kSourcePastEnd:
      return "put: 1 bytes at offset 4096 are not all in the window of rank 0, which has 4096 "
             "bytes";
    case kUnknownPeer:
      return "put: peer 9; the team has ranks 0 to 1";
    case kNegativePeer:
      return "signal: peer -1; the team has ranks 0 to 1";
    case kBadWindow:
      return "put: the window is none of this communicator";
    case kNullWindow:
      return "get: the window is none of this communicator";
    case kBadContext:
      return "context 7; the device communicator has 1, from 0";
    case kBadSignal:
      return "put: signal 500; a context has";
    case kBadCounter:
      return "put: counter 3; a context has 1, from 0";
    case kMisaligned:
      return "signal to rank 1: offset 12 of a signal is not a multiple of 8 bytes";
    case kBadBarrier:
      return "barrier 5; there are 1, from 0";
    case kGetPastEnd:
      return "get: 7 bytes at offset 4090 are not all in the window of rank 1, which has 4096 "
             "bytes";
    case kValuePastEnd:
      return "putValue: 8 bytes at offset 4092 are not all in the window of rank 1, which has 4096";
    case kAtomicPastEnd:
      return "atomic: 4 bytes at offset 4096 are not all in the window of rank 1, which has 4096";
    case kAtomicMisaligned:
      return "atomic to rank 1: offset 12 of a word is not a multiple of 8 bytes";
    default:
      return "";
  }
}

/// Where the proxy path says something else.
const char* proxied_sentence(int bad) {
  switch (bad) {
    case kHugeOffset:
      return "put: offset 18446744073709551608; through a proxy, offsets end below 281474976710656";
    case kValuePastEnd:
      return "put: 8 bytes at offset 4092 are not all in the window of rank 1, which has 4096";
    default:
      return expected_sentence(bad);
  }
}

ginDevComm make_device_comm(const Rank& rank) {
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginContextCount = 1;
  requirements.ginSignalCount = 8;
  requirements.ginCounterCount = 1;
  requirements.worldGinBarrierCount = 1;
  ginDevComm comm;
  must(ginDevCommCreate(rank.comm, &requirements, &comm), "ginDevCommCreate");
  return comm;
}

/// Runs `kernel` on two fresh ranks; errors[r] is what rank r is told. Returns what was printed.
template <class Kernel, class... Args>
std::string run_on_two(Kernel kernel, ginResult_t* errors, Args... args) {
  const testing::CapturedStderr captured;
  gin_test::run_threads(2, [&](const Rank& rank) {
    TestWindow source(rank, 4096);
    TestWindow dest(rank, 4096);
    const ginDevComm comm = make_device_comm(rank);
    rank.barrier();
    run_kernel(kernel, 1, 16, Ring{comm, source.handle(), dest.handle(), nullptr, 0}, args...);
    rank.barrier();
    errors[rank.rank] = gin_test::awaited_error(rank);
    rank.barrier();
    must(ginDevCommDestroy(rank.comm, &comm), "ginDevCommDestroy");
    EXPECT(async_error(rank) == errors[rank.rank], "an error is forgotten");
  });
  return captured.text();
}

/// Found by the rank whose memory it is; which thread made it, nobody knows by then.
bool is_found_by_target(int bad) {
  return bad == kPastEnd || bad == kGetPastEnd || bad == kValuePastEnd || bad == kAtomicPastEnd;
}

std::string expected_start(int bad, bool proxied) {
  return proxied && is_found_by_target(bad) ? "gimlet: error: rank 0: a kernel's "
                                            : "gimlet: error: rank 0: kernel ";
}

void mistakes_are_named(bool proxied) {
  for (int bad = 0; bad < kMistakes; ++bad) {
    ginResult_t errors[2] = {};
    uint64_t turns = 0;
    const std::string text = run_on_two(blunder, errors, bad, &turns);
    const std::string what = proxied ? proxied_sentence(bad) : expected_sentence(bad);
    EXPECT(text.find(expected_start(bad, proxied)) == 0, "mistake %d: %s", bad, text.c_str());
    EXPECT((proxied && is_found_by_target(bad)) ||
               text.find("blunder block 0 thread ") != std::string::npos,
           "%s", text.c_str());
    EXPECT(text.find(what) != std::string::npos, "mistake %d: %s", bad, text.c_str());
    EXPECT(testing::times_in(text, "\n") == 1, "mistake %d: %s", bad, text.c_str());
    EXPECT(errors[0] == ginInvalidArgument && errors[1] == ginRemoteError, "mistake %d: %d %d", bad,
           errors[0], errors[1]);
    EXPECT(turns == 1, "mistake %d: the kernel did not go on", bad);
  }
}

/// Rank 1's signal 5 gets 3 of 4 increments; rank 0 then waits for a barrier that rank 1 is not at.
__global__ void missing_signal(Ring ring) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, 0);
  if (ring.comm.rank == 1) {
    if (blockIdx.x == 0) gin.waitSignal(block, 5, 4);
    return;
  }
  gin.signal(gin_test::world_of(ring), 1, gin::StrongSignalAdd{5, 3}, block);
}

__global__ void missing_rank(Ring ring) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, 0);
  if (ring.comm.rank == 1) return;
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, 0);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
}

__global__ void missing_va_signal(Ring ring) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, 0);
  if (ring.comm.rank == 0) gin.waitSignal(block, ring.dest, 64, 1);
}

__global__ void missing_counter(Ring ring) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, 0);
  if (ring.comm.rank == 0) gin.waitCounter(block, 0, 2);
}

template <class Kernel>
void one_missing(Kernel kernel, int waiter, int thread, const std::string& report) {
  ginResult_t errors[2] = {};
  const std::string text = run_on_two(kernel, errors);
  const std::string who = "gimlet: rank " + std::to_string(waiter) + ": kernel ";
  // Reports at 0.3 s and 0.6 s, the end after 0.8 s; all later when the machine is busy.
  EXPECT(text.find(who) == 0, "%s", text.c_str());
  const std::string where = " block 0 thread " + std::to_string(thread) + " has waited ";
  EXPECT(text.find(where) != std::string::npos, "%s", text.c_str());
  EXPECT(testing::times_in(text, report) >= 2, "%s: %s", report.c_str(), text.c_str());
  EXPECT(testing::times_in(text, "GIN_WAIT_TIMEOUT ends all waits") == 1, "%s", text.c_str());
  EXPECT(errors[waiter] == ginTimeout, "%d", errors[waiter]);
  EXPECT(errors[1 - waiter] == ginRemoteError, "%d", errors[1 - waiter]);
}

void long_waits_are_reported() {
  one_missing(missing_signal, 1, 0, "for signal 5 of context 0: value 3, awaited at least 4");
  one_missing(missing_rank, 0, 1,
              "for rank 1 in barrier 0 of context 0: value 0, awaited at least 1");
  one_missing(missing_va_signal, 0, 0,
              "for the signal at offset 64 of window 1: value 0, awaited at least 1");
  one_missing(missing_counter, 0, 0, "for counter 0 of context 0: value 0, awaited at least 2");
}

__global__ void wait_for_ever(Ring ring, int* entered) {
  const gin::CoopCta block;
  const gin::Context gin(ring.comm, 0);
  __atomic_store_n(entered, 1, __ATOMIC_RELEASE);
  gin.waitSignal(block, 1, 1);
}

/// Aborting a communicator ends kernels that wait, on both ranks.
void abort_ends_waits() {
  std::vector<ginComm_t> comms(2);
  must(ginCommInitAll(comms.data(), 2, nullptr), "ginCommInitAll");
  std::vector<std::thread> threads;
  std::barrier meeting(2);
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      must(gin::setDevice(r), "setDevice");
      const Rank rank{comms[static_cast<std::size_t>(r)], r, 2, [&] { meeting.arrive_and_wait(); }};
      const ginDevComm comm = make_device_comm(rank);
      rank.barrier();
      int entered = 0;
      must(gin::launch(wait_for_ever, {1, 4}, Ring{comm, nullptr, nullptr, nullptr, 0}, &entered),
           "launch");
      while (__atomic_load_n(&entered, __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
      rank.barrier();
      if (r == 0) must(ginCommAbort(rank.comm), "ginCommAbort");
      must(gin::streamSynchronize(nullptr), "streamSynchronize");
      if (r == 1) EXPECT(async_error(rank) == ginRemoteError, "the other rank is not told");
      if (r == 1) must(ginCommAbort(rank.comm), "ginCommAbort");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Calls of the host that are not allowed, alone and on one of two ranks.
void host_calls_are_checked() {
  const testing::CapturedStderr captured;
  std::string last;
  gin_test::run_threads(2, [&](const Rank& rank) {
    ginWindow_t window = nullptr;
    int plain[4] = {};
    TestWindow good(rank, 4096);
    // Bad on rank 1 only: no rank gets a window, and nobody waits for ever.
    void* buffer = rank.rank == 1 ? static_cast<void*>(plain) : good.bytes();
    const ginResult_t result = ginCommWindowRegister(rank.comm, buffer, 16, &window, 0);
    EXPECT(result == (rank.rank == 1 ? ginInvalidArgument : ginRemoteError), "%d", result);
    EXPECT(ginCommWindowRegister(rank.comm, good.bytes() + 8, 16, &window, 0) == ginInvalidArgument,
           "a misaligned window");
    EXPECT(
        ginCommWindowRegister(rank.comm, good.bytes() + 16, 4096, &window, 0) == ginInvalidArgument,
        "a window past the end of its allocation");
    ginDevCommRequirements_t r = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
    r.ginConnectionType = GIN_CONNECTION_FULL;
    r.ginSignalCount = rank.rank;
    ginDevComm comm;
    EXPECT(ginDevCommCreate(rank.comm, &r, &comm) == ginInvalidUsage, "different requirements");
    r.magic = 0;
    EXPECT(ginDevCommCreate(rank.comm, &r, &comm) == ginInvalidUsage, "no magic");
    ginCommProperties_t properties = GIN_COMM_PROPERTIES_INITIALIZER;
    must(ginCommQueryProperties(rank.comm, &properties), "ginCommQueryProperties");
    EXPECT(properties.rank == rank.rank && properties.nRanks == 2, "%d", properties.rank);
    EXPECT(properties.ginType != GIN_TYPE_NONE && properties.deviceApiSupport, "no GIN");
    void* pointer = nullptr;
    EXPECT(ginWinGetUserPtr(rank.comm, good.handle(), &pointer) == ginSuccess &&
               pointer == good.bytes(),
           "%p", pointer);
    EXPECT(ginCommWindowDeregister(rank.comm, reinterpret_cast<ginWindow_t>(plain)) ==
               ginInvalidArgument,
           "a handle that is none");
    EXPECT(ginMemFree(plain) == ginInvalidArgument, "memory that is none of ours");
    rank.barrier();
    if (rank.rank == 0) last = ginGetLastError();
  });
  const std::string text = captured.text();
  EXPECT(last.find("ginMemFree: ") == 0, "%s", last.c_str());
  EXPECT(text.find("ginCommWindowRegister: rank 1 could not register its part of a window") !=
             std::string::npos,
         "%s", text.c_str());
  EXPECT(text.find("the requirements of rank 1 differ from those of rank 0") != std::string::npos,
         "%s", text.c_str());
}

int run_child(char** argv, const char* path) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("GIN_PATH", path, 1);
    ::execv("/proc/self/exe", argv);
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) std::fprintf(stderr, "with GIN_PATH=%s: status %#x\n", path, status);
  return status;
}

}  // namespace

int main(int, char** argv) {
  // Settings are read once, perhaps before main, so each path is a process of its own.
  if (::getenv("GIN_WAIT_TIMEOUT") == nullptr) {
    ::setenv("GIN_WAIT_REPORT", "0.3", 1);
    ::setenv("GIN_WAIT_TIMEOUT", "0.8", 1);
    return run_child(argv, "direct") == 0 && run_child(argv, "proxy") == 0 ? 0 : 1;
  }
  host_calls_are_checked();
  mistakes_are_named(std::strcmp(::getenv("GIN_PATH"), "proxy") == 0);
  long_waits_are_reported();
  abort_ends_waits();
  return gin_test::failures.load() == 0 ? 0 : 1;
}
