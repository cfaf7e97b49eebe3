// SPDX-License-Identifier: BSD-3-Clause
// launch: np=2,3 path=proxy,split,mixed mpirun=no timeout=60
//
// A program that calls shmem_finalize while its communicator, windows and device communicator are
// still there, and its proxy threads run: what was flushed has arrived everywhere when the call
// returns; requests that come later end; and the rest may be destroyed afterwards, or never (odd
// PEs).
#include <gin/gin.h>
#include <gin/launch.h>
#include <shmem.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kContexts = 2;
constexpr std::size_t kPiece = 96 << 10;  // of a put, several messages
constexpr std::size_t kPieces = 8;        // of a context
constexpr std::size_t kHalf = kContexts * kPieces * kPiece;

int failures = 0;

void expect(bool good, int me, const char* what) {
  if (good) return;
  ++failures;
  std::fprintf(stderr, "PE %d: %s\n", me, what);
}

void must(ginResult_t result, const char* what) {
  if (result == ginSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, ginGetLastError());
  std::_Exit(99);
}

/// One block a context.
__global__ void put_all(ginDevComm comm, ginWindow_t window) {
  const gin::Context gin(comm, static_cast<int>(blockIdx.x));
  const int next = (comm.rank + 1) % comm.nRanks;
  for (std::size_t i = 0; i < kPieces; ++i) {
    const std::size_t place = (blockIdx.x * kPieces + i) * kPiece;
    gin.put(ginTeamWorld(comm), next, window, kHalf + place, window, place, kPiece,
            gin::WeakSignalInc{0});
  }
  gin.flush(gin::CoopThread{});
}

__global__ void read_signals(ginDevComm comm, std::uint64_t* sum) {
  for (int c = 0; c < kContexts; ++c) *sum += gin::Context(comm, c).readSignal(0);
}

void run(void (*kernel)(ginDevComm, ginWindow_t), const ginDevComm& comm, ginWindow_t window) {
  must(gin::launch(kernel, {kContexts, 1}, comm, window), "launch");
  must(gin::streamSynchronize(nullptr), "streamSynchronize");
}

}  // namespace

int main() {
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const int before = (me + pes - 1) % pes;
  ginComm_t comm = nullptr;
  must(ginCommCreate(SHMEM_TEAM_WORLD, &comm), "ginCommCreate");
  void* memory = nullptr;
  ginWindow_t window = nullptr;
  must(ginMemAlloc(&memory, 2 * kHalf), "ginMemAlloc");
  std::memset(memory, me + 1, kHalf);
  auto* const arrived = static_cast<unsigned char*>(memory) + kHalf;
  std::memset(arrived, 0, kHalf);
  must(ginCommWindowRegister(comm, memory, 2 * kHalf, &window, GIN_WIN_DEFAULT), "register");
  ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = GIN_CONNECTION_FULL;
  requirements.ginContextCount = kContexts;
  requirements.ginSignalCount = 1;
  ginDevComm device_comm;
  must(ginDevCommCreate(comm, &requirements, &device_comm), "ginDevCommCreate");

  run(put_all, device_comm, window);
  shmem_finalize();
  bool whole = true;
  for (std::size_t i = 0; i < kHalf; ++i) whole = whole && arrived[i] == before + 1;
  expect(whole, me, "a put that was flushed before shmem_finalize is lost");
  std::uint64_t signals = 0;
  must(gin::launch(read_signals, {1, 1}, device_comm, &signals), "launch");
  must(gin::streamSynchronize(nullptr), "streamSynchronize");
  expect(signals == kContexts * kPieces, me, "a signal is lost");

  // Its waits end. (Loads and stores would reach a peer that still compares.)
  const char* path = nullptr;
  must(ginCommGetPeerPath(comm, (me + 1) % pes, &path), "ginCommGetPeerPath");
  if (std::strcmp(path, "proxy") == 0) run(put_all, device_comm, window);
  if (me % 2 == 1) return failures == 0 ? 0 : 1;
  must(ginDevCommDestroy(comm, &device_comm), "ginDevCommDestroy");
  must(ginCommWindowDeregister(comm, window), "ginCommWindowDeregister");
  must(ginMemFree(memory), "ginMemFree");
  must(ginCommDestroy(comm), "ginCommDestroy");
  return failures == 0 ? 0 : 1;
}
