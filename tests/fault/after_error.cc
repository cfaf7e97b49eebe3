// SPDX-License-Identifier: BSD-3-Clause
// launch: np=3 transport=auto path=direct,proxy,mixed mpirun=no timeout=120
//
// Once a communicator has failed, or was aborted, no operation and no wait of any kernel on any PE
// holds it up, whatever it was about when that happened.
#include <gin/gin.h>
#include <gin/launch.h>
#include <shmem.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

#include "../device/gin_ranks.h"

namespace {

using gin_test::must;
using gin_test::Rank;
using gin_test::TestWindow;

constexpr std::size_t kBytes = 8192;
constexpr int kRounds = 300;  // more than the ring is deep
constexpr unsigned kThreads = 8;
constexpr int kStopped = 2;
// Puts to a rank that is stopped: more than its lane takes, fewer than lane, queue and ring hold;
// and more than these hold.
constexpr int kWithinBounds = 300, kBeyondBounds = 1000;
constexpr int kDepth = 64;                        // of a ring
constexpr int kWhenFull = 64 + 256 - 1 + kDepth;  // what they take, at least
constexpr uint64_t kNoLimit = ~uint64_t{0} >> 1;

/// What a block does. The waits are for what never comes.
enum Role : unsigned {
  kPut,
  kPutWithCounter,
  kPutValue,
  kGet,
  kSignal,
  kVaSignal,
  kFlush,
  kFlushAsync,
  kAtomic,
  kAtomicFetch,
  kReset,
  kBarrier,
  kTimedBarrier,
  kWaitSignal,
  kWaitVaSignal,
  kMeetShadow,
  kFollowShadow,
  kWaitCounter,
  kRoles,
  kMistake = kRoles
};
// Signals of each context.
constexpr ginSignal_t kRaised = 0, kSilent = 1, kShadowed = 2, kFollowed = 3;

/// What a kernel tells its host.
struct Told {
  int came = 0;          // blocks that only have a wait before them
  int ended = 0;         // blocks
  int timed_result = 0;  // of a barrier
  unsigned long fetched = 0;
};

struct Job {
  ginDevComm comm;
  ginWindow_t window;
  int victim;  // of rank 0's mistake
  Told* told;
};

__device__ void put_and_get(Job const& job, unsigned role, gin::Context const& gin, int peer) {
  const gin::CoopCta block;
  const ginTeam_t world = ginTeamWorld(job.comm);
  const ginWindow_t window = job.window;
  switch (role) {
    case kPut:
      gin.put(world, peer, window, 0, window, kBytes / 2, 1024, gin::WeakSignalInc{kRaised},
              gin::None{}, block);
      break;
    case kPutWithCounter:
      gin.put(world, peer, window, 0, window, kBytes / 2, 8, gin::StrongSignalInc{kRaised},
              gin::WeakCounterInc{0}, block);
      break;
    case kPutValue:
      gin.putValue(world, peer, window, 16, uint64_t{7}, gin::WeakSignalInc{kRaised}, block);
      break;
    case kGet:
      gin.get(world, peer, window, 0, window, kBytes / 2, 1024, block);
      break;
    case kSignal:
      gin.signal(world, peer, gin::StrongSignalAdd{kRaised, 3}, block);
      break;
    default:
      gin.signal(world, peer, gin::WeakVASignalInc{window, 64}, block);
      break;
  }
}

__device__ void complete_or_update(Job const& job, unsigned role, gin::Context const& gin,
                                   int peer) {
  const gin::CoopCta block;
  const ginTeam_t world = ginTeamWorld(job.comm);
  switch (role) {
    case kFlush:
      gin.signal(world, peer, gin::WeakSignalInc{kRaised}, block);
      gin.flush(block);
      break;
    case kFlushAsync: {
      ginRequest_t request = {};
      gin.flushAsync(world, static_cast<uint32_t>(peer), &request);
      gin.wait(request);
      break;
    }
    case kAtomic:
      gin.atomic(gin::AtomicOp::Add, world, peer, job.window, 128, uint64_t{1}, block);
      break;
    case kAtomicFetch: {
      const auto old =
          gin.atomicFetch(gin::AtomicOp::Add, world, peer, job.window, 136, uint64_t{1});
      gin::atomic_ref<unsigned long>(job.told->fetched).fetch_add(old);
      break;
    }
    default:
      if (threadIdx.x == 0) {
        gin.resetSignal(kRaised);
        gin.resetCounter(0);
      }
      break;
  }
}

__device__ void meet_or_wait(Job const& job, unsigned role, gin::Context const& gin) {
  const gin::CoopCta block;
  switch (role) {
    case kBarrier: {
      gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, 0);
      barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::Put);
      break;
    }
    case kTimedBarrier: {
      gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, 1);
      const ginResult_t result =
          barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::Get, kNoLimit);
      if (threadIdx.x == 0 && result != ginSuccess) job.told->timed_result = result;
      break;
    }
    case kWaitSignal:
      gin.waitSignal(block, kSilent, 1);
      break;
    case kWaitVaSignal:
      gin.waitSignal(block, job.window, 72, 1);
      break;
    case kMeetShadow:
      if (threadIdx.x == 0) gin.increaseSignalShadow(kShadowed, 1);
      gin.waitSignalMeetShadow(block, kShadowed);
      break;
    case kFollowShadow: {
      uint64_t before = 0, delta = 0;
      gin.waitSignalFollowShadow(block, kFollowed, uint64_t{1}, &before, &delta);
      break;
    }
    default:
      gin.waitCounter(block, 1, 1);
      break;
  }
}

__device__ void play(Job const& job, unsigned role, int round) {
  const gin::Context gin(job.comm, static_cast<int>(role % 2));
  const int peer = (job.comm.rank + 1 + round % 2) % job.comm.nRanks;
  if (role <= kVaSignal) return put_and_get(job, role, gin, peer);
  if (role <= kReset) return complete_or_update(job, role, gin, peer);
  meet_or_wait(job, role, gin);
}

/// All threads of a block have come here.
__device__ void tell(int& count) {
  __syncthreads();
  if (threadIdx.x == 0) gin::atomic_ref<int>(count).fetch_add(1);
}

__global__ void everything(Job job) {
  const gin::Context gin(job.comm, 0);
  if (blockIdx.x != kMistake) {
    for (int round = 0; round < kRounds; ++round) play(job, blockIdx.x, round);
  } else if (job.comm.rank == 0 && threadIdx.x == 0) {
    for (int round = 0; round < 20; ++round) {
      gin.put(ginTeamWorld(job.comm), job.victim, job.window, 0, job.window, kBytes / 2, 8);
    }
    gin.put(ginTeamWorld(job.comm), job.victim, job.window, kBytes - 4, job.window, 0, 8);
  }
  tell(job.told->ended);
}

/// The roles that wait for ever, once each; rank 2 is not at the barriers.
__global__ void all_waits(Job job) {
  const unsigned role = kBarrier + blockIdx.x;
  tell(job.told->came);
  if (job.comm.rank != kStopped || role > kTimedBarrier) play(job, role, 0);
  tell(job.told->ended);
}

__global__ void connect(ginDevComm comm) {
  const gin::Context gin(comm, static_cast<int>(blockIdx.x));
  for (int peer = 0; peer < comm.nRanks; ++peer) {
    gin.signal(ginTeamWorld(comm), peer, gin::StrongSignalInc{kRaised});
  }
  gin.waitSignal(gin::CoopThread{}, kRaised, static_cast<uint64_t>(comm.nRanks));
}

/// What waits for requests to a rank that is stopped: for room in a ring, for an old value, for
/// completion of all and of those to one peer.
__global__ void wait_for_stopped(Job job) {
  const gin::CoopCta block;
  const gin::Context gin(job.comm, static_cast<int>(blockIdx.x));
  const ginTeam_t world = ginTeamWorld(job.comm);
  const auto post = [&](int puts) {
    for (int i = 0; i < puts; ++i) {
      gin.put(world, kStopped, job.window, 0, job.window, kBytes / 2, 1024, gin::None{},
              gin::None{}, block);
    }
  };
  switch (blockIdx.x) {
    case 0:
      post(kWithinBounds);
      tell(job.told->came);
      post(kBeyondBounds - kWithinBounds);
      break;
    case 1:
      tell(job.told->came);
      gin.atomicFetch(gin::AtomicOp::Add, world, kStopped, job.window, 136, uint64_t{1});
      break;
    case 2:
      post(kWithinBounds);
      tell(job.told->came);
      gin.flush(block);
      break;
    default: {
      post(kWithinBounds);
      tell(job.told->came);
      ginRequest_t request = {};
      gin.flushAsync(world, kStopped, &request);
      gin.wait(request);
      break;
    }
  }
  tell(job.told->ended);
}
constexpr unsigned kBlocksForStopped = 4;

ginDevComm make_device_comm(ginComm_t comm) {
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginContextCount = 4;
  requirements.ginQueueDepth = kDepth;
  requirements.ginSignalCount = 4;
  requirements.ginCounterCount = 2;
  requirements.worldGinBarrierCount = 2;
  ginDevComm out;
  must(ginDevCommCreate(comm, &requirements, &out), "ginDevCommCreate");
  return out;
}

Rank make_rank() {
  ginComm_t comm = nullptr;
  must(ginCommCreate(SHMEM_TEAM_WORLD, &comm), "ginCommCreate");
  return {comm, shmem_my_pe(), shmem_n_pes(), [] { shmem_barrier_all(); }};
}

/// It goes with the process: its communicator is aborted, not destroyed.
ginWindow_t make_window(const Rank& rank) {
  void* memory = nullptr;
  ginWindow_t window = nullptr;
  must(ginMemAlloc(&memory, kBytes), "ginMemAlloc");
  must(ginCommWindowRegister(rank.comm, memory, kBytes, &window, GIN_WIN_DEFAULT), "register");
  return window;
}

void await_count(int& count, int wanted) {
  while (gin::atomic_ref<int>(count).load() < wanted) std::this_thread::yield();
}

void expect_ended(const Rank& rank, const Told& told, unsigned blocks, const char* when) {
  EXPECT(told.ended == static_cast<int>(blocks), "PE %d: %d blocks ended %s", rank.rank, told.ended,
         when);
}

void after_a_mistake(int victim) {
  const Rank rank = make_rank();
  const ginResult_t code = rank.rank == 0 ? ginInvalidArgument : ginRemoteError;
  {
    TestWindow used(rank, kBytes);
    TestWindow untouched(rank, kBytes);
    const ginDevComm comm = make_device_comm(rank.comm);
    Told told;
    gin_test::run_kernel(everything, kMistake + 1, kThreads,
                         Job{comm, used.handle(), victim, &told});
    expect_ended(rank, told, kMistake + 1, "with the error");
    EXPECT(gin_test::awaited_error(rank) == code, "PE %d: %d", rank.rank,
           gin_test::async_error(rank));
    EXPECT(told.timed_result == code || told.timed_result == ginInternalError,
           "PE %d: a barrier %d", rank.rank, told.timed_result);
    rank.barrier();
    told = {};
    std::fill_n(untouched.bytes(), kBytes, static_cast<unsigned char>(0xa0 + rank.rank));
    gin_test::run_kernel(everything, kMistake + 1, kThreads,
                         Job{comm, untouched.handle(), victim, &told});
    expect_ended(rank, told, kMistake + 1, "after the error");
    EXPECT(told.timed_result == code, "PE %d: a barrier %d", rank.rank, told.timed_result);
    EXPECT(told.fetched == 0, "PE %d: %lu", rank.rank, told.fetched);
    rank.barrier();
    EXPECT(std::all_of(untouched.bytes(), untouched.bytes() + kBytes,
                       [&](int byte) { return byte == 0xa0 + rank.rank; }),
           "PE %d: an operation after the error changed memory", rank.rank);
    EXPECT(gin_test::async_error(rank) == code, "PE %d: the first error stays", rank.rank);
    must(ginDevCommDestroy(rank.comm, &comm), "ginDevCommDestroy");
  }
  must(ginCommDestroy(rank.comm), "ginCommDestroy");
}

/// PE 1 aborts while all wait. The communicators then go by an abort, too: kernels of others may be
/// on their way out.
void abort_while_kernels_wait() {
  const Rank rank = make_rank();
  const ginWindow_t window = make_window(rank);
  const ginDevComm comm = make_device_comm(rank.comm);
  Told told;
  constexpr unsigned kBlocks = kRoles - kBarrier;
  must(gin::launch(all_waits, {kBlocks, kThreads}, Job{comm, window, 0, &told}), "launch");
  await_count(told.came, static_cast<int>(kBlocks));
  rank.barrier();
  ginResult_t error = ginInternalError;
  if (rank.rank == 1) {
    EXPECT(gin_test::async_error(rank) == ginSuccess, "an error before the abort");
    must(ginCommAbort(rank.comm), "ginCommAbort");
  }
  must(gin::streamSynchronize(nullptr), "streamSynchronize");
  expect_ended(rank, told, kBlocks, "after the abort");
  if (rank.rank != 1) error = gin_test::awaited_error(rank);
  EXPECT(error == (rank.rank == 1 ? ginInternalError : ginRemoteError), "PE %d: %d", rank.rank,
         error);
  rank.barrier();
  if (rank.rank != 1) must(ginCommAbort(rank.comm), "ginCommAbort");
}

/// True once none of its threads runs any more.
bool stop(pid_t pid) {
  if (::kill(pid, SIGSTOP) != 0) return false;
  for (int look = 0; look < 10000; ++look) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    if (line.find(") T ") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// Symmetric: the process number of PE 2 (0: it may still be in a barrier), and how far others are.
long process;
long over;

/// Runs `body` on PEs 0 and 1 while PE 2 is stopped by a signal, so that what they have posted to
/// it stays open.
template <class Body>
void while_a_rank_is_stopped(const Rank& rank, Body body) {
  over = 0;
  process = 0;
  rank.barrier();
  if (rank.rank == kStopped) shmem_long_p(&process, ::getpid(), 0);
  if (rank.rank == 0) {
    shmem_long_wait_until(&process, SHMEM_CMP_NE, 0);
    EXPECT(stop(static_cast<pid_t>(process)), "PE 2 can't be stopped");
    shmem_long_p(&over, 1, 1);
    body();
    shmem_long_wait_until(&over, SHMEM_CMP_EQ, 3);
    ::kill(static_cast<pid_t>(process), SIGCONT);
  } else if (rank.rank != kStopped) {
    shmem_long_wait_until(&over, SHMEM_CMP_EQ, 1);
    body();
    shmem_long_p(&over, 3, 0);
  }
}

void abort_while_a_rank_is_stopped() {
  const Rank rank = make_rank();
  const ginWindow_t window = make_window(rank);
  const ginDevComm comm = make_device_comm(rank.comm);
  Told told;
  gin_test::run_kernel(connect, kBlocksForStopped, 1u, comm);
  while_a_rank_is_stopped(rank, [&] {
    must(gin::launch(wait_for_stopped, {kBlocksForStopped, kThreads}, Job{comm, window, 0, &told}),
         "launch");
    await_count(told.came, static_cast<int>(kBlocksForStopped));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // time enough to end by mistake
    EXPECT(gin::atomic_ref<int>(told.ended).load() == 0, "PE %d: nothing waits", rank.rank);
    if (rank.rank == 0) {
      shmem_long_wait_until(&over, SHMEM_CMP_EQ, 2);
      must(ginCommAbort(rank.comm), "ginCommAbort");
    } else {
      shmem_long_p(&over, 2, 0);
    }
    must(gin::streamSynchronize(nullptr), "streamSynchronize");
    expect_ended(rank, told, kBlocksForStopped, "after the abort");
  });
  if (rank.rank != 0) {
    EXPECT(gin_test::awaited_error(rank) == ginRemoteError, "PE %d: %d", rank.rank,
           gin_test::async_error(rank));
  }
  rank.barrier();
  if (rank.rank != 0) must(ginCommAbort(rank.comm), "ginCommAbort");
}

/// Every thread posts more than there is room for, until another block ends the launch.
__global__ void post_until_ended(ginDevComm comm, ginWindow_t window, int* end, int* posted) {
  if (blockIdx.x == 1) {
    const gin::atomic_ref<int> flag(*end);
    while (flag.load(gin::memory_order_relaxed) == 0) __nanosleep(1000);
    gin_exec_fail(ginTimeout, nullptr);
  }
  const gin::Context gin(comm, 0);
  for (int i = 0; i < kBeyondBounds; ++i) {
    gin.put(ginTeamWorld(comm), kStopped, window, 0, window, kBytes / 2, 1024);
    gin::atomic_ref<int>(*posted).fetch_add(1);
  }
}

__global__ void post_and_flush(ginDevComm comm, ginWindow_t window) {
  const gin::Context gin(comm, 0);
  for (int i = 0; i < kWithinBounds; ++i)
    gin.put(ginTeamWorld(comm), kStopped, window, 0, window, kBytes / 2, 8);
  gin.flush(gin::CoopThread{});
}

/// A launch that ends for a reason of its own, while its threads wait for room in a ring, leaves
/// the communicator as it was.
void launch_ends_while_it_posts() {
  const Rank rank = make_rank();
  {
    TestWindow window(rank, kBytes);
    const ginDevComm comm = make_device_comm(rank.comm);
    gin_test::run_kernel(connect, kBlocksForStopped, 1u, comm);
    while_a_rank_is_stopped(rank, [&] {
      int end = 0, posted = 0;
      must(gin::launch(post_until_ended, {2, kThreads}, comm, window.handle(), &end, &posted),
           "launch");
      await_count(posted, kWhenFull);
      gin::atomic_ref<int>(end).store(1);
      const ginResult_t result = gin::streamSynchronize(nullptr);
      EXPECT(result == ginTimeout, "PE %d: %d", rank.rank, result);
    });
    gin_test::run_kernel(post_and_flush, 1u, kThreads, comm, window.handle());
    EXPECT(gin_test::async_error(rank) == ginSuccess, "PE %d", rank.rank);
    rank.barrier();
    must(ginDevCommDestroy(rank.comm, &comm), "ginDevCommDestroy");
  }
  must(ginCommDestroy(rank.comm), "ginCommDestroy");
}

}  // namespace

int main() {
  shmem_init();
  for (const int victim : {1, 2}) after_a_mistake(victim);
  abort_while_kernels_wait();
  const char* path = ::getenv("GIN_PATH");
  if (path == nullptr || std::string_view(path) != "direct") {
    abort_while_a_rank_is_stopped();
    launch_ends_while_it_posts();
  } else {
    std::printf(
        "skipped: waits for a stopped rank's requests; on the direct path there are none\n");
  }
  shmem_finalize();
  return gin_test::failures.load() == 0 ? 0 : 1;
}
