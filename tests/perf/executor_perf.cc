// SPDX-License-Identifier: BSD-3-Clause
// What the CPU executor costs: one line a figure, the best of a few runs. Not part of make check.
#include <gin/launch.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace {

constexpr int kRuns = 40;

/// Wall-clock time, and processor time of all threads: on a machine that others use as well only
/// the second one says much.
struct Cost {
  double wall_us;
  double cpu_us;
};

double cpu_us() {
  timespec t;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

Cost best(const std::function<void()>& body) {
  Cost best{1e30, 1e30};
  for (int run = 0; run < kRuns; ++run) {
    const double cpu = cpu_us();
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    best = {std::min(best.wall_us, took.count()), std::min(best.cpu_us, cpu_us() - cpu)};
  }
  return best;
}

void print(const char* what, Cost cost, double count, const char* unit) {
  const double scale = unit[0] == 'n' ? 1e3 : 1;
  std::printf("%-44s %9.2f %s (processor %.2f)\n", what, cost.wall_us * scale / count, unit,
              cost.cpu_us * scale / count);
}

void run(ginResult_t queued) {
  if (queued == ginSuccess) queued = gin::streamSynchronize(nullptr);
  if (queued != ginSuccess) std::exit(1);
}

__global__ void nothing() {}

__global__ void hand_over(int rounds) {
  for (int i = 0; i < rounds; ++i) gin_exec_wait(&rounds, static_cast<uint64_t>(i));
}

__global__ void block_barriers(int rounds) {
  for (int i = 0; i < rounds; ++i) __syncthreads();
}

__global__ void warp_barriers(int rounds) {
  for (int i = 0; i < rounds; ++i) __syncwarp();
}

__global__ void shuffles(int rounds, int* sink) {
  int sum = static_cast<int>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  if (sum == -1) *sink = sum;
}

/// All blocks meet `rounds` times.
__global__ void grid_barriers(unsigned* arrived, int rounds) {
  for (int i = 1; i <= rounds; ++i) {
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(arrived, 1u);
      unsigned seen;
      while ((seen = gin::impl::load(arrived, gin::memory_order_acquire)) <
             gridDim.x * static_cast<unsigned>(i)) {
        gin::impl::wait_step(arrived, seen);
      }
    }
    __syncthreads();
  }
}

void switches(unsigned blocks, unsigned threads) {
  const int rounds = static_cast<int>(400'000 / (blocks * threads));
  const Cost cost = best([=] { run(gin::launch(hand_over, {blocks, threads}, rounds)); });
  const std::string what = "hand-over, " + std::to_string(blocks) + " x " + std::to_string(threads);
  print(what.c_str(), cost, 1.0 * rounds * blocks * threads, "ns");
}

void barriers(unsigned threads) {
  const int rounds = static_cast<int>(100'000 / threads);
  const Cost cost = best([=] { run(gin::launch(block_barriers, {1, threads}, rounds)); });
  print(("__syncthreads, " + std::to_string(threads) + " threads").c_str(), cost, rounds, "us");
}

}  // namespace

int main() {
  // First of all, while there are no stacks yet.
  unsigned arrived = 0;
  const auto grid_run = [&arrived](unsigned blocks, unsigned threads, int rounds) {
    arrived = 0;
    run(gin::launchCooperative(grid_barriers, {blocks, threads}, &arrived, rounds));
  };
  const double cpu = cpu_us();
  const auto start = std::chrono::steady_clock::now();
  grid_run(16, 512, 1);
  const std::chrono::duration<double, std::micro> first = std::chrono::steady_clock::now() - start;
  print("first launch of 8192 live threads", {first.count(), cpu_us() - cpu}, 1, "us");
  for (const unsigned threads : {2u, 32u, 512u, 1024u}) switches(1, threads);
  switches(16, 512);
  for (const unsigned threads : {32u, 256u, 512u}) barriers(threads);
  static constexpr int kRounds = 2000;
  print("__syncwarp", best([] {
          run(gin::launch(warp_barriers, {1, 32}, kRounds));
        }),
        kRounds, "us");
  print("__shfl_xor_sync", best([] {
          run(gin::launch(shuffles, {1, 32}, kRounds, nullptr));
        }),
        kRounds, "us");
  const Cost once = best([&] { grid_run(16, 512, 1); });
  print("relaunch of 8192 live threads", once, 1, "us");
  const Cost many = best([&] { grid_run(16, 512, 21); });
  print("barrier of 16 x 512", {many.wall_us - once.wall_us, many.cpu_us - once.cpu_us}, 20, "us");
  print("empty launch and synchronise", best([] { run(gin::launch(nothing, {1, 1})); }), 1, "us");
  print("empty launches in a row", best([] {
          for (int i = 0; i < 1000; ++i)
            if (gin::launch(nothing, {1, 1}) != ginSuccess) std::exit(1);
          run(ginSuccess);
        }),
        1000, "us");
  print("threads that never wait", best([] {
          run(gin::launch(nothing, {256, 512}));
        }),
        256 * 512, "ns");
  return 0;
}
