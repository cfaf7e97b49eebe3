// SPDX-License-Identifier: BSD-3-Clause
// launch: np=1,2,3,7 path=auto,proxy,mixed,reorder,split,staged timeout=150
//
// The GIN suite with PEs of a job as ranks.
#include <shmem.h>

#include "gin_suite.h"

namespace {

/// The symmetric heap can be a window too: host calls and kernels then share its memory.
void heap_window(const gin_test::Rank& rank) {
  constexpr std::size_t kBytes = 3000;
  auto* heap = static_cast<unsigned char*>(shmem_calloc(kBytes, 1));
  ginWindow_t window = nullptr;
  gin_test::must(ginCommWindowRegister(rank.comm, heap, kBytes, &window, GIN_WIN_DEFAULT),
                 "ginCommWindowRegister");
  gin_test::TestWindow source(rank, kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) {
    source.bytes()[i] = static_cast<unsigned char>(rank.rank + static_cast<int>(i % 97));
  }
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginSignalCount = 1;
  requirements.ginCounterCount = 1;
  requirements.worldGinBarrierCount = 1;
  gin_test::Ring ring{{}, source.handle(), window, nullptr, 0};
  gin_test::must(ginDevCommCreate(rank.comm, &requirements, &ring.comm), "ginDevCommCreate");
  std::vector<unsigned char> result(kBytes);
  gin_test::run_kernel(gin_test::put_slices<gin::CoopCta, gin::WeakSignalInc>, 1u, 64u, ring,
                       std::size_t{0}, kBytes, gin::WeakSignalInc{0}, std::uint64_t{1},
                       result.data());
  shmem_barrier_all();
  const int next = (rank.rank + 1) % rank.ranks;
  std::vector<unsigned char> there(kBytes);
  shmem_getmem(there.data(), heap, kBytes, next);
  EXPECT(std::memcmp(there.data(), source.bytes(), kBytes) == 0,
         "PE %d: the next PE's heap differs", rank.rank);
  shmem_barrier_all();
  gin_test::must(ginDevCommDestroy(rank.comm, &ring.comm), "ginDevCommDestroy");
  gin_test::must(ginCommWindowDeregister(rank.comm, window), "ginCommWindowDeregister");
  shmem_free(heap);
}

}  // namespace

int main() {
  shmem_init();
  ginComm_t comm = nullptr;
  gin_test::must(ginCommCreate(SHMEM_TEAM_WORLD, &comm), "ginCommCreate");
  gin_test::Rank rank{comm, shmem_my_pe(), shmem_n_pes(), [] { shmem_barrier_all(); }};
  {
    gin_test::Suite suite(rank);
    suite.run();
  }
  heap_window(rank);
  gin_test::must(ginCommDestroy(comm), "ginCommDestroy");
  shmem_finalize();
  return gin_test::failures.load() == 0 ? 0 : 1;
}
