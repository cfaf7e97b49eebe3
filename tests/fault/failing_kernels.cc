// SPDX-License-Identifier: BSD-3-Clause
//
// failing_kernels return|trap: what happens to kernels once PE 0 has made a mistake, for each value
// of GIN_ON_ERROR. Run by tests/fault/on_error.
#include <gin/gin.h>
#include <gin/launch.h>
#include <shmem.h>

#include <string_view>
#include <vector>

#include "../device/gin_ranks.h"

namespace {

using gin_test::must;
using gin_test::Rank;
using gin_test::TestWindow;

constexpr std::size_t kBytes = 4096;
constexpr std::size_t kHalf = kBytes / 2;
constexpr unsigned kBlocks = 6;

ginDevComm make_device_comm(const Rank& rank) {
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginSignalCount = 3;
  requirements.ginCounterCount = 1;
  requirements.worldGinBarrierCount = 1;
  ginDevComm comm;
  must(ginDevCommCreate(rank.comm, &requirements, &comm), "ginDevCommCreate");
  return comm;
}

/// The second half of the window goes to the first half of the next rank's.
__global__ void pass_on(ginDevComm comm, ginWindow_t window) {
  const gin::CoopCta block;
  const gin::Context gin(comm, 0);
  const int next = (comm.rank + 1) % comm.nRanks;
  gin.put(ginTeamWorld(comm), next, window, 0, window, kHalf, kHalf, gin::WeakSignalInc{0},
          gin::None{}, block);
  gin.waitSignal(block, 0, 1);
  gin.flush(block);
}

__device__ bool is_set(int* flag) {
  return gin::atomic_ref<int>(*flag).load(gin::memory_order_relaxed) != 0;
}

/// Block 0 of rank 0 makes a mistake. All other blocks of all ranks wait, in ways that look at the
/// communicator's error and in ways that don't. Whatever waits for the communicator and goes on
/// lets those go that wait for `released`.
__global__ void mistake(ginDevComm comm, ginWindow_t window, int* released, int* passed) {
  const gin::CoopCta block;
  const gin::Context gin(comm, 0);
  const ginTeam_t world = ginTeamWorld(comm);
  const int next = (comm.rank + 1) % comm.nRanks;
  switch (blockIdx.x) {
    case 0:
      if (comm.rank == 0)
        gin.put(world, next, window, kBytes - 4, window, 0, 8, gin::None{}, gin::None{}, block);
      gin.waitSignal(block, 1, 1);
      gin.put(world, next, window, 0, window, kHalf, 64, gin::None{}, gin::None{}, block);
      gin.flush(block);
      if (threadIdx.x == 0) gin::atomic_ref<int>(*released).store(1);
      break;
    case 1:
      while (!is_set(released)) __nanosleep(50);
      break;
    case 2:
      while (__syncthreads_or(is_set(released) ? 1 : 0) == 0) {
      }
      break;
    case 3:
      while (gin.readSignal(2) == 0 && !is_set(released)) {
      }
      break;
    case 4:
      gin.waitCounter(block, 0, 1);
      break;
    case 5:
      // Rank 0 is not at this barrier.
      if (comm.rank != 0) {
        gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, 0);
        barrier.sync(block, gin::memory_order_acq_rel);
      } else {
        gin.waitSignal(block, 1, 1);
      }
      break;
  }
  if (threadIdx.x == 0) gin::atomic_ref<int>(*passed).fetch_add(1);
}

__global__ void count(int* threads) {
  atomicAdd(threads, 1);
}

unsigned char pattern(int rank, std::size_t i) {
  return static_cast<unsigned char>(rank * 31 + static_cast<int>(i % 101) + 1);
}

void fill(const TestWindow& window, int rank) {
  for (std::size_t i = 0; i < kHalf; ++i) window.bytes()[kHalf + i] = pattern(rank, i);
}

std::size_t wrong_bytes(const TestWindow& window, const Rank& rank) {
  const int from = (rank.rank + rank.ranks - 1) % rank.ranks;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kHalf; ++i) {
    wrong += window.bytes()[i] != pattern(from, i);
    wrong += window.bytes()[kHalf + i] != pattern(rank.rank, i);
  }
  return wrong;
}

ginResult_t run(const ginDevComm& comm, const TestWindow& window, int* passed, int* queued) {
  int released = 0;
  must(gin::launch(mistake, {kBlocks, 8}, comm, window.handle(), &released, passed), "launch");
  must(gin::launch(count, {2, 8}, queued), "launch");
  return gin::streamSynchronize(nullptr);
}

/// On a fresh communicator, so that the first mistake leaves nothing behind for the second time.
void fail_once(bool traps) {
  ginComm_t handle = nullptr;
  must(ginCommCreate(SHMEM_TEAM_WORLD, &handle), "ginCommCreate");
  const Rank rank{handle, shmem_my_pe(), shmem_n_pes(), [] { shmem_barrier_all(); }};
  const ginResult_t expected = rank.rank == 0 ? ginInvalidArgument : ginRemoteError;
  {
    TestWindow window(rank, kBytes);
    fill(window, rank.rank);
    const ginDevComm comm = make_device_comm(rank);
    gin_test::run_kernel(pass_on, 1, 32, comm, window.handle());
    EXPECT(wrong_bytes(window, rank) == 0, "PE %d: before", rank.rank);
    EXPECT(gin_test::async_error(rank) == ginSuccess, "PE %d: before", rank.rank);
    rank.barrier();
    fill(window, rank.rank + 1);  // what must not be sent

    int passed = 0, queued = 0;
    ginResult_t result = run(comm, window, &passed, &queued);
    EXPECT(result == (traps ? expected : ginSuccess), "PE %d: %d", rank.rank, result);
    EXPECT(passed == (traps ? 0 : static_cast<int>(kBlocks)), "PE %d: %d", rank.rank, passed);
    EXPECT(queued == (traps ? 0 : 16), "PE %d: %d", rank.rank, queued);
    EXPECT(gin_test::awaited_error(rank) == expected, "PE %d: %d", rank.rank,
           gin_test::async_error(rank));
    // It does not recover; other launches of the stream go on.
    passed = 0;
    result = run(comm, window, &passed, &queued);
    EXPECT(result == (traps ? expected : ginSuccess), "PE %d: %d again", rank.rank, result);
    EXPECT(passed == (traps ? 0 : static_cast<int>(kBlocks)), "PE %d: %d", rank.rank, passed);
    queued = 0;
    gin_test::run_kernel(count, 2, 8, &queued);
    EXPECT(queued == 16, "PE %d: %d", rank.rank, queued);

    rank.barrier();
    fill(window, rank.rank);
    EXPECT(wrong_bytes(window, rank) == 0, "PE %d: an operation after the error", rank.rank);
    must(ginDevCommDestroy(handle, &comm), "ginDevCommDestroy");
    rank.barrier();
  }
  must(ginCommDestroy(handle), "ginCommDestroy");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 99;
  const bool traps = std::string_view(argv[1]) == "trap";
  shmem_init();
  for (int time = 0; time < 2; ++time) fail_once(traps);
  shmem_finalize();
  return gin_test::failures.load() == 0 ? 0 : 1;
}
