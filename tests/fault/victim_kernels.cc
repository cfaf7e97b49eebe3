// SPDX-License-Identifier: BSD-3-Clause
//
// victim_kernels WHAT: every PE prints its number and process, then PE 1 goes about something that
// it never ends, since it is to be killed there, while kernels of the others wait for its signal
// (wait), or have requests open to it all the time (work).
#include <gin/gin.h>
#include <gin/launch.h>
#include <shmem.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace {

constexpr std::size_t kBytes = 1 << 20;

__global__ void wait_for_pe_1(ginDevComm comm) {
  const gin::Context gin(comm, 0);
  gin.waitSignal(gin::CoopCta(), 0, 1);
}

__global__ void work_with_pe_1(ginDevComm comm, ginWindow_t window) {
  const gin::CoopCta block;
  const gin::Context gin(comm, 0);
  const ginTeam_t world = ginTeamWorld(comm);
  for (;;) {
    gin.put(world, 1, window, 0, window, 0, kBytes / 2, gin::WeakSignalInc{0}, gin::None(), block);
    gin.get(world, 1, window, kBytes / 2, window, kBytes / 2, kBytes / 2, block);
    gin.flush(block);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 99;
  const std::string_view what = argv[1];
  shmem_init();
  ginComm_t comm = nullptr;
  ginWindow_t window = nullptr;
  void* memory = nullptr;
  ginDevComm device_comm;
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginSignalCount = 1;
  if (ginCommCreate(SHMEM_TEAM_WORLD, &comm) != ginSuccess) return 98;
  if (ginMemAlloc(&memory, kBytes) != ginSuccess) return 98;
  if (ginCommWindowRegister(comm, memory, kBytes, &window, 0) != ginSuccess) return 98;
  if (ginDevCommCreate(comm, &requirements, &device_comm) != ginSuccess) return 98;
  shmem_barrier_all();
  std::printf("%d %d\n", shmem_my_pe(), static_cast<int>(::getpid()));
  std::fflush(stdout);
  for (volatile unsigned long turns = 0; shmem_my_pe() == 1;) turns = turns + 1;
  const ginResult_t launched = what == "wait"
                                   ? gin::launch(wait_for_pe_1, {1, 32}, device_comm)
                                   : gin::launch(work_with_pe_1, {1, 32}, device_comm, window);
  if (launched != ginSuccess || gin::streamSynchronize(nullptr) != ginSuccess) return 97;
  ::sleep(600);  // until oshrun ends this PE, because PE 1 was killed; 96 says that it did not
  return 96;
}
