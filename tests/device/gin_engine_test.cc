// SPDX-License-Identifier: BSD-3-Clause
// launch: np=2 path=proxy mpirun=no
//
// What proxies do for a kernel, by their counters: a put with its signal is one request, and
// neither it nor a strong signal asks anybody whether something is complete.
#include <gin/gin.h>
#include <gin/launch.h>
#include <shmem.h>

#include "gin/path/proxy/proxies.h"
#include "gin_ranks.h"

namespace {

constexpr std::uint64_t kRounds = 200;
constexpr std::size_t kLarge = 300000;  // several messages

struct Counts {
  std::uint64_t requests, batches, drains, parks, wake_ups, confirmations;
};

Counts counts_of(const ginDevComm& comm) {
  const auto& proxies = *static_cast<const gimlet::gin::Proxies*>(comm.proxy);
  const gimlet::gin::EngineCounts c = proxies.counts();
  return {c.requests, c.batches, c.drains, c.parks, c.wake_ups, proxies.confirmations()};
}

/// One put with a signal at a time, to and fro.
__global__ void puts_with_signals(ginDevComm comm, ginWindow_t window, std::size_t bytes,
                                  std::uint64_t rounds, bool strong) {
  const gin::Context gin(comm, 0);
  const ginTeam_t world = ginTeamWorld(comm);
  const int peer = 1 - comm.rank;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    if (strong) {
      gin.put(world, peer, window, 0, window, kLarge, bytes, gin::StrongSignalInc{0});
    } else {
      gin.put(world, peer, window, 0, window, kLarge, bytes, gin::WeakSignalInc{0});
    }
    gin.waitSignal(gin::CoopThread{}, 0, round);
    gin.flush(gin::CoopThread{});
  }
  gin.resetSignal(0);
}

/// Puts without a signal, then a strong signal that covers them.
__global__ void fence(ginDevComm comm, ginWindow_t window, std::uint64_t rounds) {
  const gin::Context gin(comm, 0);
  const ginTeam_t world = ginTeamWorld(comm);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    gin.put(world, 1 - comm.rank, window, 0, window, kLarge, kLarge);
    gin.put(world, 1 - comm.rank, window, 0, window, kLarge, 8);
    gin.signal(world, 1 - comm.rank, gin::StrongSignalInc{0});
    gin.waitSignal(gin::CoopThread{}, 0, round);
    gin.flush(gin::CoopThread{});
  }
  gin.resetSignal(0);
}

__global__ void drain(ginDevComm comm) {
  const gin::Context gin(comm, 0);
  gin::impl::post_drain(comm, 0, GIN_RESOURCE_SHARING_GPU, static_cast<uint32_t>(1 - comm.rank));
  gin.flush(gin::CoopThread{});
}

/// Runs a kernel on both PEs and compares what their proxies did for it.
template <class Kernel, class... Args>
void expect_requests(const char* what, std::uint64_t expected, Kernel kernel,
                     const ginDevComm& comm, Args... args) {
  shmem_barrier_all();
  const Counts before = counts_of(comm);
  gin_test::run_kernel(kernel, 1u, 1u, comm, args...);
  const Counts after = counts_of(comm);
  EXPECT(after.requests - before.requests == expected, "%s: %llu requests", what,
         static_cast<unsigned long long>(after.requests - before.requests));
  EXPECT(after.batches > before.batches, "%s", what);
  EXPECT(after.drains == before.drains, "%s", what);
  EXPECT(after.confirmations == before.confirmations, "%s", what);
}

void expect_drain_is_counted(const ginDevComm& comm) {
  shmem_barrier_all();
  const Counts before = counts_of(comm);
  gin_test::run_kernel(drain, 1u, 1u, comm);
  const Counts after = counts_of(comm);
  EXPECT(after.drains == before.drains + 1, "a drain");
  EXPECT(after.confirmations > before.confirmations, "a drain asks the peer");
}

/// A proxy that has nothing to do sleeps, and is woken by a request.
void expect_sleep(const ginDevComm& comm, ginWindow_t window) {
  const Counts before = counts_of(comm);
  bool woken = false;
  for (int look = 0; look < 100; ++look) {  // both PEs as often
    shmem_barrier_all();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    gin_test::run_kernel(puts_with_signals, 1u, 1u, comm, window, std::size_t{8}, std::uint64_t{1},
                         false);
    woken = woken || counts_of(comm).wake_ups > before.wake_ups;
  }
  EXPECT(counts_of(comm).parks > 0, "the proxy doesn't sleep");
  EXPECT(woken, "the proxy is not woken");
}

}  // namespace

int main() {
  shmem_init();
  ginComm_t comm = nullptr;
  gin_test::must(ginCommCreate(SHMEM_TEAM_WORLD, &comm), "ginCommCreate");
  {
    const gin_test::Rank rank{comm, shmem_my_pe(), shmem_n_pes(), [] { shmem_barrier_all(); }};
    gin_test::TestWindow window(rank, 2 * kLarge);
    ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
    requirements.ginConnectionType = GIN_CONNECTION_FULL;
    requirements.ginContextCount = 1;
    requirements.ginSignalCount = 1;
    ginDevComm device_comm;
    gin_test::must(ginDevCommCreate(comm, &requirements, &device_comm), "ginDevCommCreate");
    gin_test::run_kernel(puts_with_signals, 1u, 1u, device_comm, window.handle(), std::size_t{8},
                         std::uint64_t{1}, false);  // the lane is connected
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, kLarge}) {
      for (const bool strong : {false, true}) {
        expect_requests("put with its signal", kRounds, puts_with_signals, device_comm,
                        window.handle(), bytes, kRounds, strong);
      }
    }
    expect_requests("fence", 3 * kRounds, fence, device_comm, window.handle(), kRounds);
    expect_drain_is_counted(device_comm);
    expect_sleep(device_comm, window.handle());
    shmem_barrier_all();
    gin_test::must(ginDevCommDestroy(comm, &device_comm), "ginDevCommDestroy");
  }
  gin_test::must(ginCommDestroy(comm), "ginCommDestroy");
  shmem_finalize();
  return gin_test::failures.load() == 0 ? 0 : 1;
}
