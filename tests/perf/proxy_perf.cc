// SPDX-License-Identifier: BSD-3-Clause
// What the proxy path costs, beside floors of the same run. Not part of make check; it links parts
// of the library that nobody else sees, in a build folder:
//
//   make tests/perf/proxy_perf
//   GIN_PATH=proxy tools/oshrun/oshrun -np 1 --bind-to none tests/perf/proxy_perf
//       requests a second: into a carrier that does nothing (null), to the own PE (self), and
//       through a ring whose consumer does nothing (bare)
//   GIN_PATH=proxy tools/oshrun/oshrun -np 2 tests/perf/proxy_perf
//       round trip of put + signal, and of a flag in the same cache lines
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

#include "gin/path/proxy/proxies.h"

namespace {

using gimlet::Status;
using gimlet::gin::Proxies;
using gimlet::gin::Proxy;
using gimlet::gin::RingMemory;
using gimlet::pgas::CarriedRequest;

constexpr int kRuns = 15;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kSource = 4 * kPage;  // behind the pages that puts go to
constexpr std::size_t kBytes = kSource + kPage;

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

/// Every request is complete at once, and nothing has happened.
class NullCarrier final : public gimlet::pgas::Carrier {
 public:
  Status add_segment(std::byte*, std::size_t, std::uint16_t&) override { return {}; }
  Status add_staged_segment(std::byte*, std::size_t, const gimlet::device::MemoryKind&,
                            std::uint16_t&) override {
    return {};
  }
  void remove_segment(std::uint16_t) override {}
  Status add_listener(Listener, std::uint32_t&) override { return {}; }
  void remove_listener(std::uint32_t) override {}
  bool post(CarriedRequest& request) override {
    request.completed(request, {});
    return true;
  }
  bool post_note(int, std::uint32_t, std::span<const std::byte>) override { return true; }
  bool progress() override { return false; }
};

/// The rings of another device communicator, whose proxy has that carrier.
struct NullProxy {
  explicit NullProxy(const ginDevComm& like) : comm(like) {
    gimlet::gin::ResourceLayout layout;
    layout.contexts = 1;
    layout.signals_pitch = layout.counters_pitch = 64;
    std::unique_ptr<RingMemory> memory;
    must(RingMemory::make(layout, like.nRanks, 0, 1, memory));
    Proxy::Setup setup;
    setup.carriers = {&carrier};
    setup.ranks = like.nRanks;
    setup.is_mapped.assign(static_cast<std::size_t>(like.nRanks), false);
    setup.signals_pitch = setup.counters_pitch = 64;
    setup.windows = like.windowTable;
    setup.error = like.error;
    must(Proxies::open(std::move(setup), std::move(memory), proxies));
    proxies->memory().fill(comm);
    comm.proxy = proxies.get();
    must(proxies->start(std::vector<Proxy::Address>(static_cast<std::size_t>(like.nRanks))));
  }
  static void must(const Status& status) {
    if (!status.ok()) std::exit(1);
  }

  NullCarrier carrier;
  std::unique_ptr<Proxies> proxies;
  ginDevComm comm;
};

void rates(const ginDevComm& comm) {
  constexpr int kCount = 100'000;
  const NullProxy null(comm);
  for (const unsigned threads : {1u, 32u}) {
    Best self, nothing, floor;
    const auto add = [&](Best& best, const ginDevComm& to) {
      best.add(run_post(to, threads, kCount) * 1e3 / kCount);
    };
    for (int run = 0; run < kRuns; ++run) {
      add(nothing, null.comm);
      add(self, comm);
      const BareRing bare(comm);
      add(floor, bare.comm);
    }
    std::printf("request of %2u threads: null %.1f / %.1f ns, self %.1f / %.1f, bare %.1f / %.1f\n",
                threads, nothing.least, nothing.median(), self.least, self.median(), floor.least,
                floor.median());
  }
}

__global__ void to_and_fro(ginDevComm comm, ginWindow_t window, std::size_t place, int rounds) {
  const gin::Context gin(comm, 0);
  for (int i = 1; i <= rounds; ++i) {
    if (comm.rank == 1) gin.waitSignal(gin::CoopThread{}, 0, static_cast<uint64_t>(i));
    gin.put(ginTeamWorld(comm), 1 - comm.rank, window, place, window, kSource, 8,
            gin::WeakSignalInc{0});
    if (comm.rank == 0) gin.waitSignal(gin::CoopThread{}, 0, static_cast<uint64_t>(i));
  }
  gin.flush(gin::CoopThread{});
  gin.resetSignal(0);
}

void flag_to_and_fro(long* flag, long* far, int rounds) {
  const int me = shmem_my_pe();
  const auto await = [flag](long value) {
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value) __builtin_ia32_pause();
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

/// The words at `place` are where the puts land, and the flag.
void round_trips(const ginDevComm& comm, ginWindow_t window, char* memory, std::size_t place,
                 Best& library, Best& floor) {
  constexpr int kRounds = 2000;
  void* far = nullptr;
  must(ginGetPeerDevicePointer(window, place, 1 - shmem_my_pe(), &far));
  for (int run = 0; run < kRuns; ++run) {
    shmem_barrier_all();
    double start = now_us();
    must(gin::launch(to_and_fro, {1, 1}, comm, window, place, kRounds));
    must(gin::streamSynchronize(nullptr));
    library.add((now_us() - start) / kRounds);
    auto* const flag = reinterpret_cast<long*>(memory + place);
    *flag = 0;
    shmem_barrier_all();
    if (far == nullptr) continue;
    start = now_us();
    flag_to_and_fro(flag, static_cast<long*>(far), kRounds);
    floor.add((now_us() - start) / kRounds);
  }
}

void round_trips_by_line(const ginDevComm& comm, ginWindow_t window, char* memory) {
  for (std::size_t place = 0; place < kSource; place += kPage) {
    Best library, floor;
    round_trips(comm, window, memory, place, library, floor);
    if (shmem_my_pe() != 0) continue;
    std::printf("put + signal, round trip: %.2f / %.2f us", library.least, library.median());
    if (!floor.all.empty()) std::printf(", flag %.3f / %.3f", floor.least, floor.median());
    std::puts(" (min / p50)");
  }
}

}  // namespace

int main() {
  shmem_init();
  ginComm_t comm = nullptr;
  must(ginCommCreate(SHMEM_TEAM_WORLD, &comm));
  void* memory = nullptr;
  ginWindow_t window = nullptr;
  must(ginMemAlloc(&memory, kBytes));
  must(ginCommWindowRegister(comm, memory, kBytes, &window, GIN_WIN_DEFAULT));
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginContextCount = 1;
  requirements.ginSignalCount = 1;
  ginDevComm device_comm;
  must(ginDevCommCreate(comm, &requirements, &device_comm));
  if (shmem_n_pes() == 1) rates(device_comm);
  if (shmem_n_pes() == 2) round_trips_by_line(device_comm, window, static_cast<char*>(memory));
  must(ginDevCommDestroy(comm, &device_comm));
  must(ginCommWindowDeregister(comm, window));
  must(ginMemFree(memory));
  must(ginCommDestroy(comm));
  shmem_finalize();
  return 0;
}
