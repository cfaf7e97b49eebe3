// SPDX-License-Identifier: BSD-3-Clause
// launch: none timeout=300
//
// GIN_REORDER shows what a kernel takes for granted: each of ten wrong kernels fails with one of 50
// seeds, and its mended twin with none.
//
//   gin_reorder_test [--long] [CASE]
//   gin_reorder_test --as-pe CASE wrong|mended SEEDS
//
// Ranks are threads; --long gives the twins 500 seeds instead of 20. With --as-pe this process is
// one PE of two, settings are the launcher's, and the status is 3 when the kernel failed:
// tests/device/wrong_kernels does that with every case.
#include <shmem.h>

#include <cstdlib>
#include <cstring>
#include <iterator>

#include "../unit/child.h"
#include "gin_ranks.h"
#include "gin_wrong_kernels.h"

namespace {

using gin_test::Rank;
using gin_test::WrongCase;

constexpr int kRanks = 2;
constexpr int kWrongSeeds = 50;
constexpr int kTwinSeeds = 20;
constexpr int kTwinSeedsLong = 500;
constexpr int kFailedAsPe = 3;
constexpr std::size_t kCases = std::size(gin_test::kWrongCases);

/// One device communicator after the other, each of which has the next seed.
class Seeds {
 public:
  explicit Seeds(const Rank& rank)
      : rank_(rank),
        source_(rank, gin_test::kPieces * gin_test::kPieceBytes),
        dest_(rank, gin_test::kPieces * gin_test::kPieceBytes) {}

  /// Runs the kernel once on this rank. True when it did what it should.
  bool run(gin_test::WrongKernel kernel, unsigned blocks) {
    ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
    requirements.ginConnectionType = GIN_CONNECTION_FULL;
    requirements.ginContextCount = 2;
    requirements.ginSignalCount = 2;
    requirements.worldGinBarrierCount = 2;
    std::memset(dest_.bytes(), 0, dest_.size());
    int wrong = 0;
    gin_test::Stage stage = {{}, source_.handle(), dest_.handle(), &wrong};
    gin_test::must(ginDevCommCreate(rank_.comm, &requirements, &stage.comm), "ginDevCommCreate");
    gin_test::run_kernel(kernel, blocks, gin_test::kPieceThreads, stage);
    rank_.barrier();
    const bool reported = gin_test::async_error(rank_) != ginSuccess;
    gin_test::must(ginDevCommDestroy(rank_.comm, &stage.comm), "ginDevCommDestroy");
    return wrong == 0 && !reported;
  }

 private:
  const Rank& rank_;
  gin_test::TestWindow source_;
  gin_test::TestWindow dest_;
};

/// The first seed with which the kernel fails on any rank, 0: none of `seeds` does.
int first_failure(gin_test::WrongKernel kernel, unsigned blocks, int seeds) {
  std::atomic<int> failed_at{0};
  gin_test::run_threads(kRanks, [&](const Rank& rank) {
    Seeds runs(rank);
    for (int seed = 1; seed <= seeds; ++seed) {
      if (!runs.run(kernel, blocks)) failed_at.store(seed);
      rank.barrier();
      if (failed_at.load() != 0) break;
    }
  });
  return failed_at.load();
}

/// The same with PEs. A wait that is never over ends the job.
int first_failure_of_pes(gin_test::WrongKernel kernel, unsigned blocks, int seeds) {
  auto* failed = static_cast<int*>(shmem_calloc(1, sizeof(int)));
  ginComm_t comm = nullptr;
  gin_test::must(ginCommCreate(SHMEM_TEAM_WORLD, &comm), "ginCommCreate");
  const Rank rank{comm, shmem_my_pe(), shmem_n_pes(), [] { shmem_barrier_all(); }};
  int failed_at = 0;
  {
    Seeds runs(rank);
    for (int seed = 1; seed <= seeds && failed_at == 0; ++seed) {
      const bool fine = runs.run(kernel, blocks);
      for (int pe = 0; pe < rank.ranks && !fine; ++pe) shmem_int_p(failed, 1, pe);
      shmem_barrier_all();
      if (shmem_int_g(failed, rank.rank) != 0) failed_at = seed;
    }
  }
  gin_test::must(ginCommDestroy(comm), "ginCommDestroy");
  shmem_free(failed);
  return failed_at;
}

int run_as_pe(std::size_t number, bool mended, int seeds) {
  shmem_init();
  if (shmem_n_pes() != kRanks) {
    std::fprintf(stderr, "%d PEs; the kernels are written for %d\n", shmem_n_pes(), kRanks);
    shmem_global_exit(99);
  }
  const WrongCase& test = gin_test::kWrongCases[number];
  const int seed = first_failure_of_pes(mended ? test.mended : test.wrong, test.blocks, seeds);
  if (seed != 0 && shmem_my_pe() == 0) std::printf("fails with seed %d\n", seed);
  shmem_finalize();
  return seed == 0 ? 0 : kFailedAsPe;
}

/// Settings are read once a process. A wrong kernel may wait for ever: then the wait is reported.
bool judge(const WrongCase& test, const char* path, bool mended, int seeds) {
  return gimlet::tests::ended_well(gimlet::tests::in_child([&] {
    ::setenv("GIN_REORDER", "1", 1);
    ::setenv("GIN_PATH", path, 1);
    if (!mended) ::setenv("GIN_WAIT_TIMEOUT", "1", 1);
    const int seed = first_failure(mended ? test.mended : test.wrong, test.blocks, seeds);
    const char* what = mended ? "mended" : "wrong";
    if (seed == 0) {
      std::printf("%s, %s, %s: no failure with %d seeds\n", test.name, path, what, seeds);
    } else {
      std::printf("%s, %s, %s: fails with seed %d\n", test.name, path, what, seed);
    }
    std::fflush(stdout);
    return mended == (seed == 0);
  }));
}

}  // namespace

int main(int argc, char** argv) {
  int twin_seeds = kTwinSeeds;
  std::size_t first = 0;
  std::size_t end = kCases;
  if (argc == 5 && std::strcmp(argv[1], "--as-pe") == 0) {
    const std::size_t number = std::strtoul(argv[2], nullptr, 10);
    if (number >= kCases) return 99;
    return run_as_pe(number, std::strcmp(argv[3], "mended") == 0, std::atoi(argv[4]));
  }
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--long") == 0) {
      twin_seeds = kTwinSeedsLong;
    } else {
      first = std::strtoul(argv[i], nullptr, 10);
      end = first + 1;
    }
  }
  bool good = true;
  for (std::size_t i = first; i < end; ++i) {
    for (const char* path : {"direct", "proxy"}) {
      good &= judge(gin_test::kWrongCases[i], path, false, kWrongSeeds);
      good &= judge(gin_test::kWrongCases[i], path, true, twin_seeds);
    }
  }
  return good ? 0 : 1;
}
