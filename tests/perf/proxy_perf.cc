// SPDX-License-Identifier: BSD-3-Clause
// What the proxy path costs, beside floors of the same run. Not part of make check. Needs the
// sources, for RingConsumer:
//
//   oshc++ -O2 -Isrc tests/perf/proxy_perf.cc -o proxy_perf
//   GIN_PATH=proxy oshrun -np 1 ./proxy_perf    requests a second; floor: a ring and its consumer
//   GIN_PATH=proxy oshrun -np 2 ./proxy_perf    round trip; floor: a flag in shared memory
#include <gin/gin.h>
#include <gin/launch.h>
#include <sched.h>
#include <shmem.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "gin/path/proxy/ring_consumer.h"

namespace {

constexpr int kRuns = 15;

double now_us() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

void must(ginResult_t result) {
  if (result == ginSuccess) return;
  std::fprintf(stderr, "%s\n", ginGetLastError());
  std::exit(1);
}

struct Best {
  double least = 1e30;
  std::vector<double> all;
  void add(double us) {
    least = std::min(least, us);
    all.push_back(us);
  }
  double median() {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }
};

__global__ void post(ginDevComm comm, int count) {
  gin::impl::RingRequest request = {};
  request.operation = ginRingPut;
  request.flags = ginRingIndexSignal;
  request.value = 1;
  for (int i = 0; i < count; ++i) {
    gin::impl::post(comm, 0, GIN_RESOURCE_SHARING_GPU, request);
  }
  gin::Context(comm, 0).flush(gin::CoopThread{});
}

double run_post(const ginDevComm& comm, unsigned threads, int count) {
  const double start = now_us();
  must(gin::launch(post, {1, threads}, comm, count / static_cast<int>(threads)));
  must(gin::streamSynchronize(nullptr));
  return now_us() - start;
}

/// A ring like that of the communicator whose consumer does nothing.
struct BareRing {
  explicit BareRing(const ginDevComm& like) : slots(like.rings->depth), comm(like) {
    ring.slots = slots.data();
    ring.depth = slots.size();
    ring.progress = &progress;
    ring.parked = &parked;
    comm.rings = &ring;
    consumer = std::thread([this] { consume(); });
  }
  ~BareRing() {
    over = true;
    consumer.join();
  }
  void consume() {
    gimlet::gin::RingConsumer end(ring);
    gin::impl::RingRequest request;
    while (!over) {
      int taken = 0;
      while (taken < 64 && end.take(request)) ++taken;
      if (taken == 0) {
        ::sched_yield();
        continue;
      }
      end.publish_done(end.next());
      end.publish_consumed();
      gin_exec_wake();
    }
  }

  std::vector<ginRingSlot> slots;
  ginRingProgress progress{};
  std::uint32_t parked = 0;
  ginRing ring{};
  ginDevComm comm;
  std::atomic<bool> over{false};
  std::thread consumer;
};

void rates(const ginDevComm& comm) {
  constexpr int kCount = 100'000;
  for (const unsigned threads : {1u, 32u}) {
    Best library, floor;
    for (int run = 0; run < kRuns; ++run) {
      library.add(run_post(comm, threads, kCount) * 1e3 / kCount);
      BareRing bare(comm);
      floor.add(run_post(bare.comm, threads, kCount) * 1e3 / kCount);
    }
    std::printf("request of %2u threads: %.1f / %.1f ns, bare ring %.1f / %.1f (min / p50)\n",
                threads, library.least, library.median(), floor.least, floor.median());
  }
}

__global__ void to_and_fro(ginDevComm comm, ginWindow_t window, int rounds) {
  const gin::Context gin(comm, 0);
  for (int i = 1; i <= rounds; ++i) {
    if (comm.rank == 1) gin.waitSignal(gin::CoopThread{}, 0, static_cast<uint64_t>(i));
    gin.put(ginTeamWorld(comm), 1 - comm.rank, window, 0, window, 64, 8, gin::WeakSignalInc{0});
    if (comm.rank == 0) gin.waitSignal(gin::CoopThread{}, 0, static_cast<uint64_t>(i));
  }
  gin.flush(gin::CoopThread{});
  gin.resetSignal(0);
}

void flag_to_and_fro(long* flag, int rounds) {
  const int me = shmem_my_pe();
  auto* far = static_cast<long*>(shmem_ptr(flag, 1 - me));
  const auto await = [flag](long value) {
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value) ::sched_yield();
  };
  for (long i = 1; i <= rounds; ++i) {
    if (me == 1) await(i);
    __atomic_store_n(far, i, __ATOMIC_RELEASE);
    if (me == 0) await(i);
  }
  shmem_barrier_all();
  *flag = 0;
  shmem_barrier_all();
}

void round_trips(const ginDevComm& comm, ginWindow_t window) {
  constexpr int kRounds = 2000;
  auto* flag = static_cast<long*>(shmem_align(128, 128));
  *flag = 0;
  Best library, floor;
  for (int run = 0; run < kRuns; ++run) {
    shmem_barrier_all();
    double start = now_us();
    must(gin::launch(to_and_fro, {1, 1}, comm, window, kRounds));
    must(gin::streamSynchronize(nullptr));
    library.add((now_us() - start) / kRounds);
    shmem_barrier_all();
    if (shmem_ptr(flag, 1 - shmem_my_pe()) == nullptr) continue;  // GIMLET_TRANSPORT=ucx
    start = now_us();
    flag_to_and_fro(flag, kRounds);
    floor.add((now_us() - start) / kRounds);
  }
  shmem_free(flag);
  if (shmem_my_pe() != 0) return;
  std::printf("put + signal, round trip: %.2f / %.2f us", library.least, library.median());
  if (!floor.all.empty()) std::printf(", flag %.2f / %.2f", floor.least, floor.median());
  std::puts(" (min / p50)");
}

}  // namespace

int main() {
  shmem_init();
  ginComm_t comm = nullptr;
  must(ginCommCreate(SHMEM_TEAM_WORLD, &comm));
  void* memory = nullptr;
  ginWindow_t window = nullptr;
  must(ginMemAlloc(&memory, 4096));
  must(ginCommWindowRegister(comm, memory, 4096, &window, GIN_WIN_DEFAULT));
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginContextCount = 1;
  requirements.ginSignalCount = 1;
  ginDevComm device_comm;
  must(ginDevCommCreate(comm, &requirements, &device_comm));
  if (shmem_n_pes() == 1) rates(device_comm);
  if (shmem_n_pes() == 2) round_trips(device_comm, window);
  must(ginDevCommDestroy(comm, &device_comm));
  must(ginCommWindowDeregister(comm, window));
  must(ginMemFree(memory));
  must(ginCommDestroy(comm));
  shmem_finalize();
  return 0;
}
