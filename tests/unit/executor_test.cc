// SPDX-License-Identifier: BSD-3-Clause
// What kernels see on the CPU executor: indices, barriers, warps, shared memory, atomics, waits.
#include <cstdint>
#include <vector>

#include "device/backoff.h"
#include "executor_world.h"
// After the others: Check defines a macro named fail.
#include <check.h>

namespace {

using testing::choose;
using testing::has_many_threads;
using testing::run;

constexpr unsigned kFull = 0xffffffffu;

// Block sizes: one thread, parts of warps, whole ones, the largest.
constexpr unsigned kSizes[] = {1, 2, 31, 32, 33, 47, 64, 96, 250, 256, 512, 1000, 1024};

bool fits(int mode, unsigned threads) {
  return has_many_threads(mode) || threads <= 256;
}

__global__ void write_place(unsigned* places) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  atomicAdd(&places[block * blockDim.x * blockDim.y * blockDim.z + thread], 1 + block + thread);
}

START_TEST(every_thread_of_a_3d_grid_runs_once) {
  choose(_i);
  static unsigned places[3 * 2 * 2 * 4 * 3 * 1];
  ck_assert_int_eq(run(write_place, {dim3(3, 2, 2), dim3(4, 3, 1)}, &places[0]), ginSuccess);
  for (unsigned block = 0; block < 12; ++block) {
    for (unsigned thread = 0; thread < 12; ++thread)
      ck_assert_uint_eq(places[block * 12 + thread], 1 + block + thread);
  }
}
END_TEST

__global__ void sum_block(unsigned* sums) {
  GIN_SHARED(unsigned[1024], parts);
  parts[threadIdx.x] = threadIdx.x + 1;
  __syncthreads();
  unsigned width = 1024;
  while (width > 1) {
    width /= 2;
    const unsigned other = threadIdx.x + width;
    const unsigned value = threadIdx.x < width && other < blockDim.x ? parts[other] : 0;
    __syncthreads();
    parts[threadIdx.x] += value;
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = parts[0];
}

START_TEST(threads_of_a_block_share_memory_between_barriers) {
  choose(_i);
  for (const unsigned size : kSizes) {
    if (!fits(_i, size)) continue;
    const unsigned blocks = has_many_threads(_i) ? 5 : 1;
    unsigned sums[5] = {};
    ck_assert_int_eq(run(sum_block, {blocks, size}, &sums[0]), ginSuccess);
    for (unsigned block = 0; block < blocks; ++block)
      ck_assert_uint_eq(sums[block], size * (size + 1) / 2);
  }
}
END_TEST

template <int Which>
GIN_DEVICE_INLINE int* counter_of() {
  GIN_SHARED(int, counter);
  return &counter;
}

__global__ void touch_declarations(int* seen) {
  GIN_DYNAMIC_SHARED(bytes);
  if (threadIdx.x == 0) {
    *counter_of<0>() = 10;
    *counter_of<1>() = 20;
    for (unsigned i = 0; i < 1000; ++i) bytes[i] = static_cast<unsigned char>(i);
  }
  __syncthreads();
  atomicAdd(counter_of<0>(), 1);
  atomicAdd(counter_of<1>(), 2);
  __syncthreads();
  if (threadIdx.x != 1) return;
  seen[0] = *counter_of<0>();
  seen[1] = *counter_of<1>();
  seen[2] = bytes[999];
  seen[3] = static_cast<int>(reinterpret_cast<uintptr_t>(bytes) % 128);
}

START_TEST(one_declaration_is_one_object_a_block) {
  choose(_i);
  int seen[4] = {};
  gin::LaunchConfig config{1, 64};
  config.shared_bytes = 1000;
  ck_assert_int_eq(run(touch_declarations, config, &seen[0]), ginSuccess);
  ck_assert_int_eq(seen[0], 10 + 64);
  ck_assert_int_eq(seen[1], 20 + 128);
  ck_assert_int_eq(seen[2], 999 % 256);
  ck_assert_int_eq(seen[3], 0);
}
END_TEST

__global__ void leave_one_by_one(int* met) {
  GIN_SHARED(int, here);
  if (threadIdx.x == 0) here = 0;
  __syncthreads();
  for (unsigned left = blockDim.x; left > 0; --left) {
    if (threadIdx.x >= left) return;
    atomicAdd(&here, 1);
    __syncthreads();
    if (threadIdx.x == 0) met[left] = here;
    __syncthreads();
    if (threadIdx.x == 0) here = 0;
    __syncthreads();
  }
}

START_TEST(a_barrier_does_not_wait_for_threads_that_returned) {
  choose(_i);
  std::vector<int>& met = *new std::vector<int>(1025);
  const unsigned threads = has_many_threads(_i) ? 100 : 40;
  ck_assert_int_eq(run(leave_one_by_one, {1, threads}, met.data()), ginSuccess);
  for (unsigned left = 1; left <= threads; ++left)
    ck_assert_int_eq(met[left], static_cast<int>(left));
  delete &met;
}
END_TEST

__global__ void vote_block(int* counts) {
  const int odd = static_cast<int>(threadIdx.x % 2);
  const int a = __syncthreads_count(odd);
  const int b = __syncthreads_or(threadIdx.x == 5);
  const int c = __syncthreads_and(threadIdx.x < 1000);
  const int d = __syncthreads_and(threadIdx.x != 7);
  const int e = __syncthreads_or(0);
  if (threadIdx.x != blockDim.x - 1) return;
  const int all[] = {a, b, c, d, e};
  for (int i = 0; i < 5; ++i) counts[i] = all[i];
}

START_TEST(block_votes_count_predicates) {
  choose(_i);
  int counts[5] = {};
  ck_assert_int_eq(run(vote_block, {1, 99}, &counts[0]), ginSuccess);
  const int expected[] = {49, 1, 1, 0, 0};
  for (int i = 0; i < 5; ++i) ck_assert_int_eq(counts[i], expected[i]);
}
END_TEST

struct Wide {
  double a;
  int b[3];
};

/// Bits of `wrong`: which operation gave something else than CUDA would.
__global__ void exchange_in_warps(unsigned* wrong) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int lanes =
      static_cast<int>(blockDim.x - threadIdx.x / 32 * 32 < 32 ? blockDim.x % 32 : 32);
  const int value = static_cast<int>(threadIdx.x) * 3;
  const int first = static_cast<int>(threadIdx.x - threadIdx.x % 32) * 3;
  unsigned bad = 0;
  const auto expect = [&bad](bool good, unsigned bit) { bad |= good ? 0 : 1u << bit; };
  expect(__shfl_sync(kFull, value, 0) == first, 0);
  const int source = (lane + 5) % lanes;
  expect(__shfl_sync(kFull, value, source) == first + source * 3, 1);
  const int up = __shfl_up_sync(kFull, value, 1);
  expect(up == (lane == 0 ? value : value - 3), 2);
  const int down = __shfl_down_sync(kFull, value, 2, 8);
  const bool inside = lane % 8 < 6;
  expect(down == (inside && lane + 2 < lanes ? value + 6 : value), 3);
  const int mirror = __shfl_xor_sync(kFull, value, 1);
  expect(mirror == ((lane ^ 1) < lanes ? first + (lane ^ 1) * 3 : value), 4);
  const unsigned everybody = lanes == 32 ? kFull : (1u << lanes) - 1;
  expect(__ballot_sync(kFull, 1) == everybody, 5);
  expect(__ballot_sync(kFull, lane % 3 == 0) == (0x49249249u & everybody), 6);
  expect(__any_sync(kFull, lane == lanes - 1) == 1, 7);
  expect(__any_sync(kFull, 0) == 0, 8);
  expect(__all_sync(kFull, lane < 32) == 1, 9);
  expect(__all_sync(kFull, lane != 0) == 0, 10);
  const Wide wide = {lane * 0.5, {lane, -lane, lane * lane}};
  const Wide got = __shfl_sync(kFull, wide, lanes - 1);
  const int last = lanes - 1;
  expect(got.a == last * 0.5 && got.b[0] == last && got.b[1] == -last && got.b[2] == last * last,
         11);
  int sum = lane;
  for (int step = 16; step > 0; step /= 2) {
    const int other = __shfl_down_sync(kFull, sum, static_cast<unsigned>(step));
    if (lane + step < lanes) sum += other;
  }
  expect(__shfl_sync(kFull, sum, 0) == lanes * (lanes - 1) / 2, 12);
  if (bad != 0) atomicOr(wrong, bad);
}

START_TEST(warps_exchange_values) {
  choose(_i);
  for (const unsigned size : kSizes) {
    if (!fits(_i, size)) continue;
    unsigned wrong = 0;
    ck_assert_int_eq(run(exchange_in_warps, {1, size}, &wrong), ginSuccess);
    ck_assert_uint_eq(wrong, 0);
  }
}
END_TEST

/// The halves and the odd lanes of a warp synchronise a different number of times.
__global__ void split_warp(int* sums) {
  GIN_SHARED(int[3], part);
  const unsigned lane = threadIdx.x;
  const unsigned kind = lane % 2 == 1 ? 2 : lane / 16;
  const unsigned masks[] = {0x00005555u, 0x55550000u, 0xaaaaaaaau};
  const unsigned mask = masks[kind];
  if (lane < 2 || lane == 16) part[kind] = 0;
  __syncwarp();
  for (unsigned i = 0; i < 3 + kind * 4; ++i) {
    if (__ffs(static_cast<int>(mask)) - 1 == static_cast<int>(lane)) part[kind] += __popc(mask);
    __syncwarp(mask);
    if (__ballot_sync(mask, 1) != mask) part[kind] = -1000;
    if (__shfl_sync(mask, lane, 31) != (kind == 2 ? 31u : lane)) part[kind] = -1000;
  }
  __syncwarp();
  if (lane < 3) sums[lane] = part[lane];
}

START_TEST(parts_of_a_warp_synchronise_on_their_own) {
  choose(_i);
  int sums[3] = {};
  ck_assert_int_eq(run(split_warp, {1, 32}, &sums[0]), ginSuccess);
  ck_assert_int_eq(sums[0], 3 * 8);
  ck_assert_int_eq(sums[1], 7 * 8);
  ck_assert_int_eq(sums[2], 11 * 16);
}
END_TEST

__global__ void lanes_leave(unsigned* seen) {
  for (unsigned left = blockDim.x; left > 0; --left) {
    if (threadIdx.x >= left) return;
    const unsigned there = __ballot_sync(kFull, 1);
    if (threadIdx.x == 0) seen[left] = there;
  }
}

START_TEST(a_warp_does_not_wait_for_lanes_that_returned) {
  choose(_i);
  unsigned seen[33] = {};
  ck_assert_int_eq(run(lanes_leave, {1, 32}, &seen[0]), ginSuccess);
  for (unsigned left = 1; left <= 32; ++left) ck_assert_uint_eq(seen[left], kFull >> (32 - left));
}
END_TEST

/// Warps 0 and 1 meet at barrier 1, the rest at barrier 2, a different number of times.
__global__ void spans(int* rounds) {
  GIN_SHARED(int[2], turn);
  const unsigned span = threadIdx.x < 64 ? 0 : 1;
  const unsigned threads = span == 0 ? 64 : (blockDim.x - 64 + 31) / 32 * 32;
  const unsigned first = span * 64;
  if (threadIdx.x == first) turn[span] = 0;
  gin_exec_sync_named(1 + span, threads);
  for (unsigned i = 0; i < 5 + span * 3; ++i) {
    if (threadIdx.x == first + i) ++turn[span];
    gin_exec_sync_named(1 + span, threads);
  }
  if (threadIdx.x == first) rounds[span] = turn[span];
}

START_TEST(spans_of_warps_meet_at_named_barriers) {
  choose(_i);
  for (const unsigned size : {96u, 111u, 130u, 200u}) {
    int rounds[2] = {};
    ck_assert_int_eq(run(spans, {1, size}, &rounds[0]), ginSuccess);
    ck_assert_int_eq(rounds[0], 5);
    ck_assert_int_eq(rounds[1], 8);
  }
}
END_TEST

/// Each thread waits for its neighbour, the last one does not: the chain runs backwards.
__global__ void chain(int* flags, int how) {
  const unsigned me = threadIdx.x;
  if (me + 1 < blockDim.x) {
    int* const next = &flags[me + 1];
    const gin::atomic_ref<int> flag(*next);
    switch (how) {
      case 0:
        while (flag.load(gin::memory_order_acquire) == 0) {
        }
        break;
      case 1:
        while (gin::impl::load(next, gin::memory_order_acquire) == 0) __nanosleep(100);
        break;
      case 2:
        while (gin::impl::load(next, gin::memory_order_acquire) == 0) gin::impl::wait_step(next, 0);
        break;
      case 3:
        while (atomicAdd(next, 0) == 0) {
        }
        __threadfence();
        break;
      case 4:
        while (gin::impl::load(next, gin::memory_order_relaxed) == 0) __threadfence();
        break;
      default: {
        gimlet::device::Backoff backoff;
        while (gin::impl::load(next, gin::memory_order_acquire) == 0) backoff.step();
      }
    }
  }
  __threadfence();
  gin::atomic_ref<int>(flags[me]).store(1, gin::memory_order_release);
}

START_TEST(waits_for_threads_of_the_same_block_end) {
  choose(_i);
  for (int how = 0; how < 6; ++how) {
    static int flags[64];
    for (int& flag : flags) flag = 0;
    ck_assert_int_eq(run(chain, {1, 64}, &flags[0], how), ginSuccess);
    ck_assert_int_eq(flags[0], 1);
  }
}
END_TEST

__global__ void add_under_lock(int* lock, int* sum) {
  for (int i = 0; i < 10; ++i) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    const int before = gin::impl::load(sum, gin::memory_order_relaxed);
    __nanosleep(1);  // others run while the lock is held
    gin::atomic_ref<int>(*sum).store(before + 1, gin::memory_order_relaxed);
    __threadfence();
    atomicExch(lock, 0);
  }
}

START_TEST(a_lock_between_threads_of_a_block_is_handed_on) {
  choose(_i);
  int lock = 0;
  int sum = 0;
  ck_assert_int_eq(run(add_under_lock, {2, 48}, &lock, &sum), ginSuccess);
  ck_assert_int_eq(sum, 2 * 48 * 10);
}
END_TEST

__global__ void use_atomics(int* ints, unsigned* wraps, double* real, unsigned long long* wide) {
  const int me = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&ints[0], me);
  atomicSub(&ints[1], me);
  atomicMax(&ints[2], me);
  atomicMin(&ints[3], -me);
  atomicOr(&ints[4], 1 << (me % 16));
  atomicAnd(&ints[5], ~(1 << (me % 16)));
  atomicXor(&ints[6], me);
  atomicInc(&wraps[0], 9);
  atomicDec(&wraps[1], 9);
  atomicAdd(real, 0.5);
  atomicAdd_system(wide, 1ull << 32);
  atomicMax(&wide[1], static_cast<unsigned long long>(me));
}

START_TEST(atomics_do_what_cuda_says) {
  choose(_i);
  int ints[7] = {0, 0, -5, 5, 0, 0xffff, 0};
  unsigned wraps[2] = {0, 0};
  double real = 0;
  unsigned long long wide[2] = {};
  ck_assert_int_eq(run(use_atomics, {4, 60}, &ints[0], &wraps[0], &real, &wide[0]), ginSuccess);
  const int n = 240;
  ck_assert_int_eq(ints[0], n * (n - 1) / 2);
  ck_assert_int_eq(ints[1], -n * (n - 1) / 2);
  ck_assert_int_eq(ints[2], n - 1);
  ck_assert_int_eq(ints[3], -(n - 1));
  ck_assert_int_eq(ints[4], 0xffff);
  ck_assert_int_eq(ints[5], 0);
  int all = 0;
  for (int i = 0; i < n; ++i) all ^= i;
  ck_assert_int_eq(ints[6], all);
  ck_assert_uint_eq(wraps[0], 0);  // 240 steps of ten
  ck_assert_uint_eq(wraps[1], 0);
  ck_assert(real == 120.0);
  ck_assert(wide[0] == 240ull << 32);
  ck_assert(wide[1] == 239);
}
END_TEST

/// A block never waits for a thread of another warp here, so that each finds its own value.
__global__ void keep_locals(unsigned* wrong) {
  volatile unsigned mine[16];
  for (unsigned i = 0; i < 16; ++i) mine[i] = threadIdx.x * 100 + i;
  const double real = threadIdx.x * 0.25;
  const gin_exec_thread* const self = gin_exec_self();
  for (int turn = 0; turn < 20; ++turn) {
    __syncthreads();
    gin_exec_yield();
    for (unsigned i = 0; i < 16; ++i)
      if (mine[i] != threadIdx.x * 100 + i) atomicAdd(wrong, 1u);
    if (real != threadIdx.x * 0.25 || self != gin_exec_self()) atomicAdd(wrong, 1u);
  }
}

START_TEST(threads_keep_their_variables_across_hand_overs) {
  choose(_i);
  unsigned wrong = 0;
  const unsigned blocks = has_many_threads(_i) ? 40 : 2;
  ck_assert_int_eq(run(keep_locals, {blocks, 100}, &wrong), ginSuccess);
  ck_assert_uint_eq(wrong, 0);
}
END_TEST

__global__ void meet_as_grid(unsigned* arrived, unsigned rounds) {
  for (unsigned round = 1; round <= rounds; ++round) {
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(arrived, 1u);
      const gin::atomic_ref<unsigned> all(*arrived);
      while (all.load(gin::memory_order_acquire) < round * gridDim.x) {
      }
    }
    __syncthreads();
  }
}

START_TEST(blocks_of_a_cooperative_grid_wait_for_each_other) {
  choose(_i);
  unsigned arrived = 0;
  const gin::LaunchConfig config =
      has_many_threads(_i) ? gin::LaunchConfig{8, 512} : gin::LaunchConfig{8, 32};
  ck_assert_int_eq(gin::launchCooperative(meet_as_grid, config, &arrived, 5u), ginSuccess);
  ck_assert_int_eq(gin::streamSynchronize(nullptr), ginSuccess);
  ck_assert_uint_eq(arrived, 5 * config.grid.x);
}
END_TEST

__global__ void wait_a_little(unsigned long long* sum) {
  for (int i = 0; i < 3; ++i) __nanosleep(10);
  if (threadIdx.x == 0) atomicAdd(sum, static_cast<unsigned long long>(blockIdx.x) + 1);
}

START_TEST(a_grid_larger_than_what_is_resident_runs_to_its_end) {
  choose(_i);
  unsigned long long sum = 0;
  const unsigned long long blocks = GIMLET_TSAN != 0 ? 140 : 20000;
  ck_assert_int_eq(run(wait_a_little, {dim3(blocks), 32}, &sum), ginSuccess);
  ck_assert(sum == blocks * (blocks + 1) / 2);
}
END_TEST

__global__ void spin_raw(volatile int* flag) {
  if (blockIdx.x != gridDim.x - 1) {
    while (*flag == 0) {
    }
  } else {
    *flag = 1;
  }
}

START_TEST(a_raw_spin_on_another_block_ends) {
  if (GIMLET_TSAN != 0) return;  // a race, which is the point
  choose(_i);
  int flag = 0;
  ck_assert_int_eq(run(spin_raw, {4, 1}, &flag), ginSuccess);
}
END_TEST

Suite* executor_suite() {
  Suite* const suite = suite_create("executor");
  TCase* const all = tcase_create("both modes");
  tcase_set_timeout(all, 120);
  for (const TTest* const test :
       {every_thread_of_a_3d_grid_runs_once, threads_of_a_block_share_memory_between_barriers,
        one_declaration_is_one_object_a_block, a_barrier_does_not_wait_for_threads_that_returned,
        block_votes_count_predicates, warps_exchange_values,
        parts_of_a_warp_synchronise_on_their_own, a_warp_does_not_wait_for_lanes_that_returned,
        spans_of_warps_meet_at_named_barriers, waits_for_threads_of_the_same_block_end,
        a_lock_between_threads_of_a_block_is_handed_on, atomics_do_what_cuda_says,
        threads_keep_their_variables_across_hand_overs,
        blocks_of_a_cooperative_grid_wait_for_each_other}) {
    tcase_add_loop_test(all, test, 0, testing::kAllModes);
  }
  suite_add_tcase(suite, all);
  TCase* const fibers = tcase_create("fibers");
  tcase_set_timeout(fibers, 120);
  tcase_add_loop_test(fibers, a_grid_larger_than_what_is_resident_runs_to_its_end, 0,
                      testing::kFiberModes);
  tcase_add_loop_test(fibers, a_raw_spin_on_another_block_ends, 0, testing::kFiberModes);
  suite_add_tcase(suite, fibers);
  return suite;
}

}  // namespace

int main() {
  SRunner* const runner = srunner_create(executor_suite());
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
