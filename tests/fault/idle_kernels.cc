// SPDX-License-Identifier: BSD-3-Clause
// launch: np=3 path=auto,proxy,mixed mpirun=no args=3
//
// idle_kernels [SECONDS]: a job that sleeps uses no processor while a device communicator is alive
// whose kernel has run: at most 0.1 % of a core in each PE, all its threads together. idle is the
// same without kernels.
#include <gin/gin.h>
#include <gin/launch.h>
#include <shmem.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

double used_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

void nap(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

__global__ void talk(ginDevComm comm) {
  const gin::CoopCta block;
  const gin::Context gin(comm, 0);
  const int next = (comm.rank + 1) % comm.nRanks;
  if (blockIdx.x == 0) gin.signal(ginTeamWorld(comm), next, gin::StrongSignalAdd{0, 1}, block);
  gin.waitSignal(block, 0, 1);
}

bool run_kernel(ginComm_t comm, ginDevComm& device_comm) {
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginSignalCount = 1;
  return ginDevCommCreate(comm, &requirements, &device_comm) == ginSuccess &&
         gin::launch(talk, {4, 64}, device_comm) == ginSuccess &&
         gin::streamSynchronize(nullptr) == ginSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 30;
  shmem_init();
  ginComm_t comm = nullptr;
  ginDevComm device_comm;
  if (ginCommCreate(SHMEM_TEAM_WORLD, &comm) != ginSuccess) return 1;
  if (!run_kernel(comm, device_comm)) return 1;
  shmem_barrier_all();
  nap(0.5);  // what the last messages left to do is done
  const double before = used_seconds();
  nap(seconds);
  const double used = used_seconds() - before;
  const double share = used / seconds;
  std::printf("PE %d used %.3f ms in %.0f s: %.4f %% of a core\n", shmem_my_pe(), used * 1e3,
              seconds, share * 100);
  std::fflush(stdout);
  shmem_barrier_all();
  (void)ginDevCommDestroy(comm, &device_comm);
  (void)ginCommDestroy(comm);
  shmem_finalize();
  return share <= 0.001 ? 0 : 1;
}
