// SPDX-License-Identifier: BSD-3-Clause
// launch: np=1,2,3,4,7,16
//
// gin_alltoall [ELEMENTS]: every PE sends ELEMENTS integers (default 4096) to every PE from inside
// a kernel, and checks each one that it received.
//
// Every block moves its part of every message, so that 16 blocks work on all peers at once. A block
// waits only for the blocks of the same number on the other PEs: each of their puts raises this
// block's signal when its data is here.
#include <gin/gin.h>
#include <shmem.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kBlocks = 16;
constexpr int kThreads = 512;

__global__ void alltoall(ginDevComm comm, ginWindow_t out, ginWindow_t in, size_t elements) {
  const gin::CoopCta block;
  const gin::Context gin(comm, 0);
  const ginTeam_t world = ginTeamWorld(comm);
  const ginSignal_t signal = blockIdx.x;
  gin::BarrierSession<gin::CoopCta> barrier(block, gin, ginTeamTagWorld{}, blockIdx.x);

  // Nobody signals before everybody has read: the barrier is what makes `before` reliable.
  const uint64_t before = gin.readSignal(signal);
  barrier.sync(block, gin::memory_order_relaxed, gin::FenceLevel::None);

  const size_t first = elements * blockIdx.x / gridDim.x;
  const size_t last = elements * (blockIdx.x + 1) / gridDim.x;
  const size_t me = static_cast<size_t>(world.rank);
  for (int step = 0; step < world.nRanks; ++step) {
    const int peer = (world.rank + step) % world.nRanks;  // not all to the same one at once
    const size_t from = (static_cast<size_t>(peer) * elements + first) * sizeof(int);
    const size_t to = (me * elements + first) * sizeof(int);
    gin.put(world, peer, in, to, out, from, (last - first) * sizeof(int),
            gin::WeakSignalInc{signal}, gin::None{}, block);
  }

  gin.waitSignal(block, signal, before + static_cast<uint64_t>(world.nRanks));
  gin.flush(block);
  // After this the program may change what it sent and read what it received, on every PE.
  barrier.sync(block, gin::memory_order_acq_rel, gin::FenceLevel::None);
}

void check(ginResult_t result, const char* what) {
  if (result == ginSuccess) return;
  std::fprintf(stderr, "gin_alltoall: %s: %s\n", what, ginGetErrorString(result));
  shmem_global_exit(1);
}

int value(int source, int dest, size_t i) {
  return source * 1000 + dest * 100 + static_cast<int>(i);
}

size_t count_wrong(const int* in, int me, int pes, size_t elements) {
  size_t wrong = 0;
  for (int source = 0; source < pes; ++source) {
    for (size_t i = 0; i < elements; ++i) {
      const int got = in[static_cast<size_t>(source) * elements + i];
      if (got == value(source, me, i)) continue;
      if (wrong++ == 0) {
        std::fprintf(stderr, "gin_alltoall: PE %d: element %zu from PE %d is %d and not %d\n", me,
                     i, source, got, value(source, me, i));
      }
    }
  }
  return wrong;
}

/// A window over fresh memory; the caller keeps `memory` until it deregisters the window.
ginWindow_t make_window(ginComm_t comm, size_t bytes, int** memory) {
  void* address = nullptr;
  ginWindow_t window = nullptr;
  check(ginMemAlloc(&address, bytes), "allocating a window's memory");
  check(ginCommWindowRegister(comm, address, bytes, &window, GIN_WIN_DEFAULT),
        "registering a window");
  *memory = static_cast<int*>(address);
  return window;
}

ginDevComm make_device_comm(ginComm_t comm) {
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginContextCount = 1;
  requirements.ginSignalCount = kBlocks;
  requirements.worldGinBarrierCount = kBlocks;
  ginDevComm device_comm;
  check(ginDevCommCreate(comm, &requirements, &device_comm), "making a device communicator");
  return device_comm;
}

struct Row {
  double milliseconds;
  size_t bytes;
  size_t wrong;
  char path[8];
};

/// How kernels of this PE reach the others: one word, or "mixed".
const char* path_to_all(ginComm_t comm, int pes) {
  const char* first = nullptr;
  check(ginCommGetPeerPath(comm, 0, &first), "asking for the path");
  for (int peer = 1; peer < pes; ++peer) {
    const char* path = nullptr;
    check(ginCommGetPeerPath(comm, peer, &path), "asking for the path");
    if (std::strcmp(path, first) != 0) return "mixed";
  }
  return first;
}

/// PE 0 prints one line for each PE; true there when all are right.
bool print_table(const Row* rows, int pes) {
  bool all_right = true;
  std::printf("%4s %12s %12s %8s %10s %9s\n", "PE", "bytes in", "bytes out", "path", "time ms",
              "verified");
  for (int pe = 0; pe < pes; ++pe) {
    const Row& row = rows[pe];
    std::printf("%4d %12zu %12zu %8s %10.2f %9s\n", pe, row.bytes, row.bytes, row.path,
                row.milliseconds, row.wrong == 0 ? "yes" : "no");
    all_right = all_right && row.wrong == 0;
  }
  return all_right;
}

}  // namespace

int main(int argc, char** argv) {
  size_t elements = 4096;
  if (argc > 1) {
    char* end = nullptr;
    elements = std::strtoul(argv[1], &end, 10);
    if (argc > 2 || elements == 0 || elements > (1u << 24) || *end != '\0') {
      std::fprintf(stderr, "usage: gin_alltoall [ELEMENTS]   (1 to %u)\n", 1u << 24);
      return 2;
    }
  }

  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  auto* rows = static_cast<Row*>(shmem_calloc(static_cast<size_t>(pes), sizeof(Row)));
  if (rows == nullptr) shmem_global_exit(1);

  ginComm_t comm = nullptr;
  check(ginCommCreate(SHMEM_TEAM_WORLD, &comm), "making a communicator");
  const size_t bytes = static_cast<size_t>(pes) * elements * sizeof(int);
  int* out = nullptr;
  int* in = nullptr;
  const ginWindow_t out_window = make_window(comm, bytes, &out);
  const ginWindow_t in_window = make_window(comm, bytes, &in);
  const ginDevComm device_comm = make_device_comm(comm);
  for (int dest = 0; dest < pes; ++dest) {
    for (size_t i = 0; i < elements; ++i) {
      out[static_cast<size_t>(dest) * elements + i] = value(me, dest, i);
    }
  }

  const auto start = std::chrono::steady_clock::now();
  check(gin::launch(alltoall, {kBlocks, kThreads}, device_comm, out_window, in_window, elements),
        "launching the kernel");
  check(gin::streamSynchronize(nullptr), "running the kernel");
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  ginResult_t failure = ginSuccess;
  check(ginCommGetAsyncError(comm, &failure), "asking for errors of the kernel");
  check(failure, "communicating");

  Row row = {time.count(), bytes, count_wrong(in, me, pes, elements), ""};
  std::strncpy(row.path, path_to_all(comm, pes), sizeof row.path - 1);
  shmem_putmem(&rows[me], &row, sizeof row, 0);
  shmem_barrier_all();
  bool right = row.wrong == 0;
  if (me == 0) right = print_table(rows, pes) && right;

  check(ginDevCommDestroy(comm, &device_comm), "ending the device communicator");
  check(ginCommWindowDeregister(comm, out_window), "ending a window");
  check(ginCommWindowDeregister(comm, in_window), "ending a window");
  check(ginCommDestroy(comm), "ending the communicator");
  check(ginMemFree(out), "freeing memory");
  check(ginMemFree(in), "freeing memory");
  shmem_free(rows);
  shmem_finalize();
  return right ? 0 : 1;
}
