// SPDX-License-Identifier: BSD-3-Clause
// launch: np=3 path=proxy,split mpirun=no timeout=240
//
// backpressure [SECONDS]: PE 2 is stopped by a signal. PEs 0 and 1 then post more requests to it
// than lanes, queues and rings hold, in a context of their own, while in another they exchange
// puts with signals, both rings full. Their traffic goes on, exactly, in memory that doesn't grow;
// and once PE 2 goes on everything completes.
#include <gin/gin.h>
#include <gin/launch.h>
#include <shmem.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#ifdef __SANITIZE_ADDRESS__
/// What launches have freed is used again at once: otherwise it is kept, and memory grows with
/// them.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=0:thread_local_quarantine_size_kb=0";
}
#endif

namespace {

constexpr int kStopped = 2;
constexpr int kDepth = 64;
constexpr unsigned kThreads = 96;  // more than the ring is deep
constexpr std::uint64_t kBurst = 4;
constexpr std::uint64_t kRounds = 20;  // of a launch
constexpr std::size_t kPayload = 64;
// What a lane and its queue hold, and more than these and the ring do.
constexpr std::uint64_t kWithinBounds = 64 + 256 - 1;
constexpr std::uint64_t kBeyondBounds = 4 * (64 + 256 + kDepth);
constexpr std::size_t kHeldBytes = 4096;
constexpr int kTalk = 0, kHeld = 1;            // contexts
constexpr ginSignal_t kFromHeld = kThreads;    // at PE 2
constexpr ginSignal_t kBeside = kThreads + 1;  // of the exchange beside requests that are held

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "PE %d: %s: %s\n", shmem_my_pe(), what, ginGetLastError());
  shmem_global_exit(1);
  std::abort();
}

void must(ginResult_t result, const char* what) {
  if (result != ginSuccess) give_up(what);
}

void expect(bool good, const char* what) {
  if (!good) give_up(what);
}

/// What a kernel tells its host while it runs.
struct Told {
  std::atomic<std::uint64_t> posted{0};
  std::atomic<bool> went_on{false};
  std::atomic<std::uint64_t> wrong{0};
};

/// Where a thread's payloads of a round land: rounds take turns, since a peer may be one ahead.
constexpr std::size_t place_of(std::uint64_t thread, std::uint64_t round, std::uint64_t i) {
  return (((round % 2) * kThreads + thread) * kBurst + i) * kPayload;
}
constexpr std::size_t kSourceAt = 2 * kThreads * kBurst * kPayload;
constexpr std::size_t kBytes = kSourceAt + kThreads * kBurst * kPayload;

/// Each thread talks to the same thread of the other PE.
__global__ void exchange(ginDevComm comm, ginWindow_t window, std::uint64_t* memory, int peer,
                         std::uint64_t first_round, Told* told) {
  const gin::Context gin(comm, kTalk);
  const ginTeam_t world = ginTeamWorld(comm);
  const std::uint64_t me = threadIdx.x;
  for (std::uint64_t round = first_round; round < first_round + kRounds; ++round) {
    for (std::uint64_t i = 0; i < kBurst; ++i) {
      const std::size_t from = kSourceAt + (me * kBurst + i) * kPayload;
      memory[from / 8] = round << 16 | me << 8 | i;
      gin.put(world, peer, window, place_of(me, round, i), window, from, kPayload,
              gin::WeakSignalInc{static_cast<ginSignal_t>(me)});
    }
    ginRequest_t request;
    gin.flushAsync(world, static_cast<std::uint32_t>(peer), &request);
    gin.wait(request);
    gin.waitSignal(gin::CoopThread{}, static_cast<ginSignal_t>(me), (round + 1) * kBurst);
    for (std::uint64_t i = 0; i < kBurst; ++i) {
      if (memory[place_of(me, round, i) / 8] != (round << 16 | me << 8 | i)) ++told->wrong;
    }
  }
}

/// Requests to the PE that is stopped: first as many as may be held without harm to the context's
/// other peers, then so many that its ring stops.
__global__ void hold(ginDevComm comm, ginWindow_t window, int peer, Told* told) {
  const gin::Context gin(comm, kHeld);
  const ginTeam_t world = ginTeamWorld(comm);
  const auto post = [&] {
    gin.put(world, kStopped, window, 0, window, kSourceAt, kHeldBytes,
            gin::WeakSignalInc{kFromHeld});
    ++told->posted;
  };
  for (std::uint64_t i = 0; i < kWithinBounds; ++i) post();
  for (std::uint64_t round = 1; round <= 100; ++round) {
    gin.signal(world, peer, gin::StrongSignalInc{kBeside});
    ginRequest_t request;
    gin.flushAsync(world, static_cast<std::uint32_t>(peer), &request);
    gin.wait(request);
    gin.waitSignal(gin::CoopThread{}, kBeside, round);
  }
  told->went_on = true;
  for (std::uint64_t i = 0; i < kBeyondBounds; ++i) post();
  gin.flush(gin::CoopThread{});
}

__global__ void meet(ginDevComm comm) {
  for (int c = kTalk; c <= kHeld; ++c) {
    const gin::Context gin(comm, c);
    for (int peer = 0; peer < comm.nRanks; ++peer) {
      gin.signal(ginTeamWorld(comm), peer, gin::StrongSignalInc{kBeside});
    }
    gin.waitSignal(gin::CoopThread{}, kBeside, static_cast<std::uint64_t>(comm.nRanks));
    gin.resetSignal(kBeside);
  }
}

__global__ void await_held(ginDevComm comm) {
  gin::Context(comm, kHeld)
      .waitSignal(gin::CoopThread{}, kFromHeld, 2 * (kWithinBounds + kBeyondBounds));
}

long resident_kib() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "VmRSS: %ld", &kib) == 1) break;
  }
  if (file != nullptr) std::fclose(file);
  return kib;
}

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

void nap(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Symmetric: the process number of PE 2, and up to which launch PE 0 says to go on (-1: no more).
long process;
long launches;
long over;

/// PE 0 decides whether there is another launch.
bool another(int me, long next, double until) {
  const bool goes_on = now() < until;
  if (me == 0) shmem_long_p(&launches, goes_on ? next : -1, 1);
  if (me == 0) return goes_on;
  shmem_long_wait_until(&launches, SHMEM_CMP_NE, next - 1);
  return launches == next;
}

struct Setting {
  ginDevComm comm;
  ginWindow_t window;
  std::uint64_t* memory;
};

void talk(const Setting& s, int me, double seconds) {
  const int peer = 1 - me;
  Told told;
  gin::Stream held = nullptr;
  must(gin::streamCreate(&held), "streamCreate");
  must(gin::launch(hold, {1, 1, 0, held}, s.comm, s.window, peer, &told), "launch");
  const double until = now() + seconds;
  long warm = 0;
  std::uint64_t rounds = 0;
  for (long n = 1; another(me, n, until); ++n, rounds += kRounds) {
    must(gin::launch(exchange, {1, kThreads}, s.comm, s.window, s.memory, peer, rounds, &told),
         "launch");
    must(gin::streamSynchronize(nullptr), "streamSynchronize");
    if (n == 10) warm = resident_kib();
  }
  const long grown = warm == 0 ? 0 : resident_kib() - warm;
  const std::uint64_t posted = told.posted;
  std::printf("PE %d: %llu puts of each kind, %llu requests held, memory grew by %ld KiB\n", me,
              static_cast<unsigned long long>(rounds * kThreads * kBurst),
              static_cast<unsigned long long>(posted), grown);
  expect(rounds != 0, "the two PEs that run exchange nothing");
  expect(told.went_on, "a context that holds requests within bounds stops its other peers");
  expect(posted >= kWithinBounds + kDepth, "requests to the stopped PE are not taken");
  expect(posted < kWithinBounds + kBeyondBounds, "requests to the stopped PE are never held back");
  expect(grown < 1024, "memory grows");
  shmem_long_p(&over, 1, 1 - me);
  shmem_long_wait_until(&over, SHMEM_CMP_EQ, 1);
  if (me == 0) ::kill(static_cast<pid_t>(process), SIGCONT);
  must(gin::streamSynchronize(held), "streamSynchronize");
  expect(told.posted == kWithinBounds + kBeyondBounds, "requests are missing");
  expect(told.wrong == 0, "payload that came with a signal is wrong");
  must(gin::streamDestroy(held), "streamDestroy");
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  shmem_init();
  const int me = shmem_my_pe();
  ginComm_t comm = nullptr;
  must(ginCommCreate(SHMEM_TEAM_WORLD, &comm), "ginCommCreate");
  void* memory = nullptr;
  Setting s{};
  must(ginMemAlloc(&memory, kBytes), "ginMemAlloc");
  std::memset(memory, 0, kBytes);
  s.memory = static_cast<std::uint64_t*>(memory);
  must(ginCommWindowRegister(comm, memory, kBytes, &s.window, GIN_WIN_DEFAULT), "register");
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginContextCount = 2;
  requirements.ginQueueDepth = kDepth;
  requirements.ginSignalCount = kThreads + 2;
  must(ginDevCommCreate(comm, &requirements, &s.comm), "ginDevCommCreate");
  expect(s.comm.ginContextCount == 2, "two contexts");

  must(gin::launch(meet, {1, 1}, s.comm), "launch");
  must(gin::streamSynchronize(nullptr), "streamSynchronize");
  if (me == kStopped) shmem_long_p(&process, ::getpid(), 0);
  shmem_barrier_all();
  if (me == 0) {
    nap(0.3);  // PE 2 has nothing left to do
    expect(::kill(static_cast<pid_t>(process), SIGSTOP) == 0, "PE 2 can't be stopped");
  }
  if (me == kStopped) {
    must(gin::launch(await_held, {1, 1}, s.comm), "launch");
    must(gin::streamSynchronize(nullptr), "streamSynchronize");
  } else {
    if (me == 1) nap(0.5);
    talk(s, me, seconds);
  }
  shmem_barrier_all();
  must(ginDevCommDestroy(comm, &s.comm), "ginDevCommDestroy");
  must(ginCommWindowDeregister(comm, s.window), "ginCommWindowDeregister");
  must(ginMemFree(memory), "ginMemFree");
  must(ginCommDestroy(comm), "ginCommDestroy");
  shmem_finalize();
  return 0;
}
