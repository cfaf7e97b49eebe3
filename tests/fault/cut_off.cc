// SPDX-License-Identifier: BSD-3-Clause
// launch: np=3 transport=auto path=proxy,mixed mpirun=no timeout=120
//
// PE 1 lives, but its connections break while kernels of all PEs have requests to each other under
// way: what a network does to a node, and what the end of a process does not show, since the
// launcher then ends the job. Every PE is told that a peer is lost, kernels end, and so does the
// program.
#include <dirent.h>
#include <gin/gin.h>
#include <gin/launch.h>
#include <netinet/in.h>
#include <shmem.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <string>

#include "../captured_stderr.h"
#include "../device/gin_ranks.h"

namespace {

using gin_test::must;
using gin_test::Rank;
using gin_test::TestWindow;

constexpr int kLost = 1;
constexpr std::size_t kBytes = 1 << 16;

/// Block 0 works until the host says stop; block 1 waits for what never comes.
__global__ void talk(ginDevComm comm, ginWindow_t window, int* stop, int* rounds) {
  const gin::CoopCta block;
  const gin::Context gin(comm, 0);
  const ginTeam_t world = ginTeamWorld(comm);
  const gin::atomic_ref<int> told(*stop);
  if (blockIdx.x == 1) return gin.waitSignal(block, 1, 1);
  for (int round = 0; __syncthreads_or(told.load(gin::memory_order_relaxed)) == 0; ++round) {
    const int peer = (comm.rank + 1 + round % 2) % comm.nRanks;
    gin.put(world, peer, window, 0, window, kBytes / 2, kBytes / 4, gin::WeakSignalInc{0},
            gin::None{}, block);
    gin.get(world, peer, window, kBytes / 2, window, 3 * (kBytes / 4), kBytes / 4, block);
    gin.flush(block);
    if (threadIdx.x == 0) gin::atomic_ref<int>(*rounds).store(round);
  }
}

/// The connections over IP of this process.
std::set<int> connections() {
  std::set<int> found;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (const dirent* entry = folder == nullptr ? nullptr : ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) continue;
    if (address.ss_family == AF_INET || address.ss_family == AF_INET6) found.insert(fd);
  }
  if (folder != nullptr) ::closedir(folder);
  return found;
}

/// All but those that were there `before`: the launcher's.
std::size_t cut_connections(const std::set<int>& before) {
  std::size_t cut = 0;
  for (const int fd : connections()) {
    if (before.count(fd) == 0 && ::shutdown(fd, SHUT_RDWR) == 0) ++cut;
  }
  return cut;
}

ginDevComm make_device_comm(ginComm_t comm) {
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginSignalCount = 2;
  ginDevComm out;
  must(ginDevCommCreate(comm, &requirements, &out), "ginDevCommCreate");
  return out;
}

/// What a PE that is not cut off itself has of the error: it, or the first who noticed, names PE 1.
void check_survivor(const Rank& rank, const ginErrorWord& word, const std::string& text) {
  // Of two that lost each other PE 1 may be the one whose word gets to this PE, by a store.
  EXPECT((word.rank == kLost) != (word.peer == kLost), "PE %d: PE %d lost %d", rank.rank, word.rank,
         word.peer);
  EXPECT(word.operation == ginOpPut || word.operation == ginOpGet, "PE %d: operation %u", rank.rank,
         word.operation);
  const bool was_first = word.rank == rank.rank;
  const std::string start = "gimlet: PE " + std::to_string(rank.rank) + ": error: a kernel's ";
  EXPECT(testing::times_in(text, start) == (was_first ? 1 : 0), "PE %d: %s", rank.rank,
         text.c_str());
  EXPECT(
      testing::times_in(text, " failed: PE 1 can't be reached any more: ") == (was_first ? 1 : 0),
      "PE %d: %s", rank.rank, text.c_str());
}

/// Returns when the kernels have ended, which they do because of the error.
void lose_a_peer(const Rank& rank, const ginDevComm& comm, ginWindow_t window,
                 const std::set<int>& launchers) {
  int stop = 0, rounds = 0;
  must(gin::launch(talk, {2, 16}, comm, window, &stop, &rounds), "launch");
  while (gin::atomic_ref<int>(rounds).load() < 5) std::this_thread::yield();
  rank.barrier();
  if (rank.rank == kLost)
    must(cut_connections(launchers) != 0 ? ginSuccess : ginSystemError, "cut");
  (void)gin_test::awaited_error(rank);
  gin::atomic_ref<int>(stop).store(1);
  must(gin::streamSynchronize(nullptr), "streamSynchronize");
}

void run(const std::set<int>& launchers) {
  ginComm_t comm = nullptr;
  must(ginCommCreate(SHMEM_TEAM_WORLD, &comm), "ginCommCreate");
  const Rank rank{comm, shmem_my_pe(), shmem_n_pes(), [] { shmem_barrier_all(); }};
  {
    TestWindow window(rank, kBytes);
    const ginDevComm device_comm = make_device_comm(comm);
    rank.barrier();
    std::string text;
    ginErrorWord word{};
    {
      const testing::CapturedStderr captured;
      lose_a_peer(rank, device_comm, window.handle(), launchers);
      word = *device_comm.error;
      must(ginDevCommDestroy(comm, &device_comm), "ginDevCommDestroy");
      text = captured.text();
    }
    EXPECT(word.code == ginRemoteError, "PE %d: %d", rank.rank, word.code);
    if (rank.rank != kLost) check_survivor(rank, word, text);
    rank.barrier();
  }
  must(ginCommDestroy(comm), "ginCommDestroy");
}

}  // namespace

int main(int, char** argv) {
  const char* const transports = ::getenv("UCX_TLS");
  if (transports == nullptr || std::strcmp(transports, "tcp") != 0) {
    ::setenv("UCX_TLS", "tcp", 1);
    ::execv("/proc/self/exe", argv);
    return 99;
  }
  shmem_init();
  run(connections());
  shmem_finalize();
  return gin_test::failures.load() == 0 ? 0 : 1;
}
