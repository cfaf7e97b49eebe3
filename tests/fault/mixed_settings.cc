// SPDX-License-Identifier: BSD-3-Clause
//
// mixed_settings: PEs whose settings differ, run by tests/fault/disagreement. Each says how far the
// job came: "communicator N" or "device communicator N", where making it gave that result, or
// "good", when kernels and host calls have moved data.
#include <gin/gin.h>
#include <gin/launch.h>
#include <shmem.h>

#include <cstdio>
#include <string>

#include "../device/gin_ranks.h"

namespace {

using gin_test::must;
using gin_test::Rank;
using gin_test::TestWindow;

constexpr std::size_t kBytes = 100000;
constexpr std::size_t kHalf = kBytes / 2;

/// The second half of the window goes to the first half of the next rank's, and counts there.
__global__ void pass_on(ginDevComm comm, ginWindow_t window) {
  const gin::CoopCta block;
  const gin::Context gin(comm, 0);
  const int next = (comm.rank + 1) % comm.nRanks;
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, 0);
  gin.put(ginTeamWorld(comm), next, window, 0, window, kHalf, kHalf, gin::WeakSignalInc{0},
          gin::None{}, block);
  gin.waitSignal(block, 0, 1);
  gin.resetSignal(0);
  gin.flush(block);
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::Put);
}

unsigned char pattern(int rank, std::size_t i) {
  return static_cast<unsigned char>(rank * 31 + static_cast<int>(i % 101) + 1);
}

std::size_t wrong_bytes(const unsigned char* bytes, int rank) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kHalf; ++i) wrong += bytes[i] != pattern(rank, i);
  return wrong;
}

void try_kernels(const Rank& rank, const ginDevComm& comm, const TestWindow& window) {
  const int from = (rank.rank + rank.ranks - 1) % rank.ranks;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < kHalf; ++i) {
      window.bytes()[i] = 0;
      window.bytes()[kHalf + i] = pattern(rank.rank + round, i);
    }
    rank.barrier();
    gin_test::run_kernel(pass_on, 1u, 32u, comm, window.handle());
    EXPECT(wrong_bytes(window.bytes(), from + round) == 0, "PE %d: a kernel's data", rank.rank);
    rank.barrier();
  }
  EXPECT(gin_test::async_error(rank) == ginSuccess, "PE %d", rank.rank);
}

void try_host(int me, int pes) {
  static unsigned char source[kHalf], there[kHalf];
  const int next = (me + 1) % pes;
  auto* const count = static_cast<long*>(shmem_calloc(1, sizeof(long)));
  auto* const heap = static_cast<unsigned char*>(shmem_calloc(kHalf, 1));
  for (std::size_t i = 0; i < kHalf; ++i) source[i] = pattern(me, i);
  for (int i = 0; i < 1000; ++i) shmem_long_atomic_inc(count, 0);
  shmem_putmem(heap, source, kHalf, next);
  shmem_barrier_all();
  EXPECT(wrong_bytes(heap, (me + pes - 1) % pes) == 0, "PE %d: data of a put", me);
  shmem_getmem(there, heap, kHalf, next);
  EXPECT(wrong_bytes(there, me) == 0, "PE %d: data of a get", me);
  if (me == 0) EXPECT(*count == 1000L * pes, "%ld", *count);
  shmem_barrier_all();
  shmem_free(heap);
  shmem_free(count);
}

std::string try_all(const Rank& rank) {
  TestWindow window(rank, kBytes);
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginContextCount = 3;
  requirements.ginSignalCount = 1;
  requirements.worldGinBarrierCount = 1;
  ginDevComm comm;
  const ginResult_t made = ginDevCommCreate(rank.comm, &requirements, &comm);
  if (made != ginSuccess) return "device communicator " + std::to_string(made);
  try_kernels(rank, comm, window);
  must(ginDevCommDestroy(rank.comm, &comm), "ginDevCommDestroy");
  return "good";
}

}  // namespace

int main() {
  shmem_init();
  const int me = shmem_my_pe();
  try_host(me, shmem_n_pes());
  ginComm_t comm = nullptr;
  const ginResult_t made = ginCommCreate(SHMEM_TEAM_WORLD, &comm);
  std::string said = "communicator " + std::to_string(made);
  if (made == ginSuccess) {
    said = try_all({comm, me, shmem_n_pes(), [] { shmem_barrier_all(); }});
    must(ginCommDestroy(comm), "ginCommDestroy");
  }
  std::printf("%s\n", said.c_str());
  shmem_barrier_all();
  shmem_finalize();
  return gin_test::failures.load() == 0 ? 0 : 1;
}
