// SPDX-License-Identifier: BSD-3-Clause
// launch: none timeout=225
//
// GIN with ranks that are threads of this process, where the thread sanitizer sees every access of
// every rank. Settings are read once a process, so each combination is a run of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "gin_suite.h"

namespace {

using gin_test::Rank;

constexpr unsigned kBlocks = 4;
constexpr unsigned kBlockThreads = 16;
constexpr std::size_t kInts = 4096;

/// Blocks split every message; receivers read what came in the kernel itself, without any
/// synchronisation but the signal's.
__global__ void exchange(ginDevComm comm, ginWindow_t out, ginWindow_t in, int round, int* wrong) {
  const gin::CoopCta block;
  const gin::Context gin(comm, 0);
  const ginTeam_t world = ginTeamWorld(comm);
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);
  auto* mine = static_cast<int*>(ginGetLocalPointer(out, 0));
  const std::size_t share = kInts / gridDim.x;
  const std::size_t first = blockIdx.x * share;
  for (std::size_t i = first + threadIdx.x; i < first + share; i += blockDim.x) {
    mine[i] = comm.rank * 100000 + round * 10000 + static_cast<int>(i);
  }
  const uint64_t before = gin.readSignal(blockIdx.x);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  for (int peer = 0; peer < world.nRanks; ++peer) {
    const std::size_t to = (static_cast<std::size_t>(comm.rank) * kInts + first) * sizeof(int);
    gin.put(world, peer, in, to, out, first * sizeof(int), share * sizeof(int),
            gin::WeakSignalInc{blockIdx.x}, gin::None{}, block);
  }
  gin.waitSignal(block, blockIdx.x, before + static_cast<uint64_t>(world.nRanks));
  const auto* got = static_cast<const int*>(ginGetLocalPointer(in, 0));
  for (int source = 0; source < world.nRanks; ++source) {
    for (std::size_t i = first + threadIdx.x; i < first + share; i += blockDim.x) {
      const int expected = source * 100000 + round * 10000 + static_cast<int>(i);
      if (got[static_cast<std::size_t>(source) * kInts + i] != expected) {
        __atomic_fetch_add(wrong, 1, __ATOMIC_RELAXED);
      }
    }
  }
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
}

/// Puts without a signal, one strong signal behind them; and the same with the fence of a barrier.
__global__ void strong(ginDevComm comm, ginWindow_t out, ginWindow_t in, int round, int* wrong) {
  const gin::CoopCta block;
  const gin::Context gin(comm, 0);
  const ginTeam_t world = ginTeamWorld(comm);
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);
  const int next = (comm.rank + 1) % comm.nRanks;
  const int previous = (comm.rank + comm.nRanks - 1) % comm.nRanks;
  const std::size_t place = (blockIdx.x * blockDim.x + threadIdx.x) * sizeof(int);
  auto* mine = static_cast<int*>(ginGetLocalPointer(out, place));
  const auto* got = static_cast<const int*>(ginGetLocalPointer(in, place));
  const ginSignal_t signal = gridDim.x + blockIdx.x;
  const uint64_t before = gin.readSignal(signal);
  *mine = round * 10 + comm.rank;
  barrier.sync(block, gin::memory_order_relaxed, gin::FenceLevel::None);
  gin.put(world, next, in, place, out, place, sizeof(int));
  gin.signal(world, next, gin::StrongSignalInc{signal}, block);
  gin.waitSignal(block, signal, before + 1);
  if (*got != round * 10 + previous) __atomic_fetch_add(wrong, 1, __ATOMIC_RELAXED);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
  *mine = -(round * 10 + comm.rank);
  gin.put(world, next, in, place, out, place, sizeof(int));
  barrier.sync(block, gin::memory_order_relaxed, gin::FenceLevel::Put);
  if (*got != -(round * 10 + previous)) __atomic_fetch_add(wrong, 1, __ATOMIC_RELAXED);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
}

void exchange_rounds(const Rank& rank) {
  gin_test::TestWindow out(rank, kInts * sizeof(int));
  gin_test::TestWindow in(rank, static_cast<std::size_t>(rank.ranks) * kInts * sizeof(int));
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginSignalCount = 2 * kBlocks;
  requirements.worldGinBarrierCount = kBlocks;
  ginDevComm comm;
  gin_test::must(ginDevCommCreate(rank.comm, &requirements, &comm), "ginDevCommCreate");
  int wrong = 0;
  for (int round = 0; round < 5; ++round) {
    gin_test::run_kernel(exchange, kBlocks, kBlockThreads, comm, out.handle(), in.handle(), round,
                         &wrong);
    gin_test::run_kernel(strong, kBlocks, kBlockThreads, comm, out.handle(), in.handle(), round,
                         &wrong);
  }
  EXPECT(wrong == 0, "rank %d: %d", rank.rank, wrong);
  EXPECT(gin_test::async_error(rank) == ginSuccess, "rank %d", rank.rank);
  rank.barrier();
  gin_test::must(ginDevCommDestroy(rank.comm, &comm), "ginDevCommDestroy");
}

void suite(const Rank& rank) {
  gin_test::Suite checks(rank);
  checks.run();
}

/// Barriers of more ranks than signal each other at once.
void many_ranks(const Rank& rank) {
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.worldGinBarrierCount = 2;
  gin_test::Ring ring{};
  gin_test::TestWindow out(rank, 4096);
  gin_test::TestWindow in(rank, 4096);
  ring.source = out.handle();
  ring.dest = in.handle();
  gin_test::must(ginDevCommCreate(rank.comm, &requirements, &ring.comm), "ginDevCommCreate");
  int wrong = 0;
  const auto put_get = gin::FenceLevel::Put | gin::FenceLevel::Get;
  for (const gin::FenceLevel fence : {gin::FenceLevel::Put, gin::FenceLevel::Get, put_get}) {
    gin_test::run_kernel(gin_test::barrier_rounds<gin::CoopCta>, 2, 4, ring,
                         ginTeamWorld(rank.comm), ginBarrierHandle_t{}, 1, fence, 5, &wrong);
  }
  EXPECT(wrong == 0, "rank %d: %d", rank.rank, wrong);
  rank.barrier();
  gin_test::must(ginDevCommDestroy(rank.comm, &ring.comm), "ginDevCommDestroy");
}

struct Run {
  const char* name;
  int ranks;
  void (*body)(const Rank&);
  const char* executor;
  const char* lsa_team_size;
  const char* path;
  const char* direct_span;
  const char* seed = "0";           // of GIN_REORDER, unless that is set already
  const char* contexts_each = "0";  // of GIN_PROXY_CONTEXTS
};

// At most 256 device threads run at a time as system threads, all ranks together.
const Run kRuns[] = {
    {"exchange", 4, exchange_rounds, "threads", "0", "auto", "0"},
    {"exchange", 4, exchange_rounds, "threads", "0", "proxy", "0"},
    {"exchange", 4, exchange_rounds, "fibers", "0", "auto", "0"},
    {"exchange", 4, exchange_rounds, "fibers", "0", "auto", "2"},
    {"exchange", 4, exchange_rounds, "threads", "0", "auto", "2", "1"},
    {"suite", 1, suite, "fibers", "0", "direct", "0"},
    {"suite", 1, suite, "fibers", "0", "proxy", "0"},
    {"suite", 4, suite, "fibers", "2", "auto", "0"},
    {"suite", 4, suite, "fibers", "2", "proxy", "0"},
    {"suite", 3, suite, "fibers", "0", "auto", "0"},
    {"suite", 3, suite, "fibers", "0", "auto", "2"},
    {"suite", 3, suite, "fibers", "0", "auto", "0", "1"},
    {"suite", 3, suite, "fibers", "0", "proxy", "0", "2"},
    {"suite", 3, suite, "fibers", "0", "auto", "2", "3"},
    {"suite", 3, suite, "fibers", "0", "auto", "2", "4", "1"},
    {"suite", 3, suite, "fibers", "0", "proxy", "0", "0", "1"},
    {"suite", 3, suite, "fibers", "0", "auto", "2", "0", "2"},
    {"suite", 2, suite, "threads", "1", "auto", "0"},
    {"suite", 2, suite, "threads", "1", "proxy", "0"},
    {"suite", 2, suite, "threads", "1", "proxy", "0", "0", "1"},
    {"many ranks", 45, many_ranks, "fibers", "0", "auto", "0"},
    {"many ranks", 45, many_ranks, "fibers", "0", "proxy", "0"},
    {"many ranks", 45, many_ranks, "fibers", "0", "auto", "7"},
    {"many ranks", 45, many_ranks, "fibers", "0", "auto", "7", "4"},
};

int run_in_child(const char* program, std::size_t index) {
  const Run& run = kRuns[index];
  std::printf("%s, %d ranks, %s, lsa limit %s, path %s, direct span %s, seed %s, contexts %s\n",
              run.name, run.ranks, run.executor, run.lsa_team_size, run.path, run.direct_span,
              run.seed, run.contexts_each);
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("GIN_EXECUTOR", run.executor, 1);
    ::setenv("GIN_LSA_TEAM_SIZE", run.lsa_team_size, 1);
    ::setenv("GIN_PATH", run.path, 1);
    ::setenv("GIN_DIRECT_SPAN", run.direct_span, 1);
    ::setenv("GIN_REORDER", run.seed, 0);
    ::setenv("GIN_PROXY_CONTEXTS", run.contexts_each, 1);
    const std::string number = std::to_string(index);
    ::execl("/proc/self/exe", program, number.c_str(), nullptr);
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "exchange") != 0) {
    const Run& run = kRuns[std::strtoul(argv[1], nullptr, 10)];
    gin_test::run_threads(run.ranks, run.body);
    return gin_test::failures.load() == 0 ? 0 : 1;
  }
  const bool exchange_only = argc > 1;
  for (std::size_t i = 0; i < sizeof kRuns / sizeof kRuns[0]; ++i) {
    if (exchange_only && kRuns[i].body != exchange_rounds) continue;
    const int status = run_in_child(argv[0], i);
    if (status == 0) continue;
    std::fprintf(stderr, "%s of %d ranks (%s) failed with status %d\n", kRuns[i].name,
                 kRuns[i].ranks, kRuns[i].executor, status);
    return status;
  }
  return 0;
}
