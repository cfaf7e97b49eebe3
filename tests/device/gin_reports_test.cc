// SPDX-License-Identifier: BSD-3-Clause
// launch: np=2,3 transport=auto path=auto,proxy
//
// PEs of a job: a wait that nobody ends is reported with PE, kernel, block, thread and values, and
// a mistake of one PE is told to all.
#include <shmem.h>
#include <unistd.h>

#include <string>

#include "../captured_stderr.h"
#include "gin_kernels.h"
#include "gin_ranks.h"

namespace {

using gin_test::must;

__global__ void stuck(ginDevComm comm) {
  const gin::CoopCta block;
  const gin::Context gin(comm, 0);
  if (comm.rank == 0 && blockIdx.x == 0) {
    gin.signal(ginTeamWorld(comm), 1, gin::StrongSignalAdd{5, 3}, block);
  } else if (comm.rank == 1 && blockIdx.x == 3) {
    gin.waitSignal(block, 5, 4);
  }
}

__global__ void past_the_end(ginDevComm comm, ginWindow_t window) {
  const gin::Context gin(comm, 0);
  if (comm.rank == comm.nRanks - 1) {
    gin.put(ginTeamWorld(comm), 0, window, 4096, window, 0, 8, gin::WeakSignalInc{0});
  } else {
    gin.waitSignal(gin::CoopThread{}, 0, 1);
  }
}

ginDevComm make_device_comm(ginComm_t comm) {
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginSignalCount = 8;
  ginDevComm device_comm;
  must(ginDevCommCreate(comm, &requirements, &device_comm), "ginDevCommCreate");
  return device_comm;
}

void expect(const std::string& text, const std::string& part) {
  EXPECT(text.find(part) != std::string::npos, "no '%s' in: %s", part.c_str(), text.c_str());
}

}  // namespace

int main(int, char** argv) {
  if (::getenv("GIN_WAIT_TIMEOUT") == nullptr) {
    ::setenv("GIN_WAIT_REPORT", "0.3", 1);
    ::setenv("GIN_WAIT_TIMEOUT", "1", 1);
    ::execv("/proc/self/exe", argv);
    return 99;
  }
  shmem_init();
  const int me = shmem_my_pe();
  const int last = shmem_n_pes() - 1;
  ginComm_t comm = nullptr;
  must(ginCommCreate(SHMEM_TEAM_WORLD, &comm), "ginCommCreate");
  const gin_test::Rank rank{comm, me, last + 1, [] { shmem_barrier_all(); }};
  std::string text;

  ginDevComm device_comm = make_device_comm(comm);
  shmem_barrier_all();
  {
    const testing::CapturedStderr captured;
    gin_test::run_kernel(stuck, 4, 8, device_comm);
    shmem_barrier_all();
    text = captured.text();
  }
  if (me == 1) {
    expect(text, "gimlet: PE 1: kernel ");
    expect(text, "stuck block 3 thread 0 has waited ");
    expect(text, " s for signal 5 of context 0: value 3, awaited at least 4");
    expect(text, "GIN_WAIT_TIMEOUT ends all waits");
  }
  const ginResult_t expected = me == 1 ? ginTimeout : ginRemoteError;
  const ginResult_t error = gin_test::awaited_error(rank);
  EXPECT(error == expected, "PE %d: %d", me, error);
  must(ginDevCommDestroy(comm, &device_comm), "ginDevCommDestroy");
  must(ginCommDestroy(comm), "ginCommDestroy");

  must(ginCommCreate(SHMEM_TEAM_WORLD, &comm), "ginCommCreate");
  const gin_test::Rank again{comm, me, last + 1, [] { shmem_barrier_all(); }};
  device_comm = make_device_comm(comm);
  {
    gin_test::TestWindow window(again, 4096);
    shmem_barrier_all();
    {
      const testing::CapturedStderr captured;
      gin_test::run_kernel(past_the_end, 1, 1, device_comm, window.handle());
      shmem_barrier_all();
      text = captured.text();
    }
    if (me == last) {
      expect(text, "put: 8 bytes at offset 4096 are not all in the window of PE 0, which has 4096");
    }
    const ginResult_t told = me == last ? ginInvalidArgument : ginRemoteError;
    const ginResult_t second = gin_test::awaited_error(again);
    EXPECT(second == told, "PE %d: %d", me, second);
  }
  must(ginDevCommDestroy(comm, &device_comm), "ginDevCommDestroy");
  must(ginCommDestroy(comm), "ginCommDestroy");
  shmem_finalize();
  return gin_test::failures.load() == 0 ? 0 : 1;
}
