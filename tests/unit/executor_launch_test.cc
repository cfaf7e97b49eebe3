// SPDX-License-Identifier: BSD-3-Clause
// Launching on the CPU executor: streams, refusals, kernels that fail, what a stuck kernel says.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../captured_stderr.h"
#include "device/cpu/stack_pool.h"
#include "executor_world.h"
// After the others: Check defines a macro named fail.
#include <check.h>

namespace {

using gimlet::device::StackPool;
using testing::CapturedStderr;
using testing::choose;
using testing::has_fibers;
using testing::run;

void await_flag(const int* flag, int value) {
  const gin::atomic_ref<int> word(*const_cast<int*>(flag));
  while (word.load(gin::memory_order_acquire) < value) gin_exec_wait(flag, 0);
}

void set_flag(int* flag, int value) {
  gin::atomic_ref<int>(*flag).store(value, gin::memory_order_release);
}

__global__ void append(int* list, int* length, int value) {
  __syncthreads();
  if (threadIdx.x == 0 && blockIdx.x == 0) list[(*length)++] = value;
  __syncthreads();
}

START_TEST(launches_of_a_stream_run_in_order) {
  choose(_i);
  static int list[2][50];
  static int length[2];
  gin::Stream streams[2];
  for (gin::Stream& stream : streams) ck_assert_int_eq(gin::streamCreate(&stream), ginSuccess);
  for (int i = 0; i < 50; ++i) {
    for (int s = 0; s < 2; ++s) {
      ck_assert_int_eq(gin::launch(append, {1, 20, 0, streams[s]}, &list[s][0], &length[s], i),
                       ginSuccess);
    }
  }
  for (const gin::Stream stream : streams)
    ck_assert_int_eq(gin::streamSynchronize(stream), ginSuccess);
  for (int s = 0; s < 2; ++s) {
    ck_assert_int_eq(length[s], 50);
    for (int i = 0; i < 50; ++i) ck_assert_int_eq(list[s][i], i);
    ck_assert_int_eq(gin::streamDestroy(streams[s]), ginSuccess);
  }
}
END_TEST

__global__ void await_and_answer(int* request, int* answer) {
  if (threadIdx.x == 0) await_flag(request, 1);
  __syncthreads();
  if (threadIdx.x == blockDim.x - 1) set_flag(answer, 1);
}

START_TEST(a_launch_is_asynchronous_to_the_host) {
  choose(_i);
  static int request, answer;
  ck_assert_int_eq(gin::launch(await_and_answer, {1, 16}, &request, &answer), ginSuccess);
  ck_assert_int_eq(answer, 0);
  set_flag(&request, 1);
  ck_assert_int_eq(gin::deviceSynchronize(), ginSuccess);
  ck_assert_int_eq(answer, 1);
}
END_TEST

START_TEST(a_destroyed_stream_finishes_its_launches) {
  choose(_i);
  static int request, answer;
  gin::Stream stream;
  ck_assert_int_eq(gin::streamCreate(&stream), ginSuccess);
  ck_assert_int_eq(gin::launch(await_and_answer, {1, 4, 0, stream}, &request, &answer), ginSuccess);
  ck_assert_int_eq(gin::streamDestroy(stream), ginSuccess);
  set_flag(&request, 1);
  ck_assert_int_eq(gin::deviceSynchronize(), ginSuccess);
  ck_assert_int_eq(answer, 1);
}
END_TEST

/// Each rank signals the next one and waits for the one before, round after round.
__global__ void pass_round(int* words, int rank, int ranks, int rounds) {
  for (int round = 1; round <= rounds; ++round) {
    __syncthreads();
    if (threadIdx.x == 0) {
      set_flag(&words[((rank + 1) % ranks) * 16 + static_cast<int>(blockIdx.x)], round);
      await_flag(&words[rank * 16 + static_cast<int>(blockIdx.x)], round);
    }
    __syncthreads();
  }
}

START_TEST(kernels_of_ranks_that_are_threads_wait_for_each_other) {
  choose(_i);
  static int words[4 * 16];
  std::atomic<int> failures{0};
  std::vector<std::thread>* const ranks = new std::vector<std::thread>;
  for (int rank = 0; rank < 4; ++rank) {
    ranks->emplace_back([rank, &failures] {
      if (run(pass_round, {4, 16}, &words[0], rank, 4, 20) != ginSuccess) ++failures;
    });
  }
  for (std::thread& rank : *ranks) rank.join();
  delete ranks;
  ck_assert_int_eq(failures, 0);
}
END_TEST

START_TEST(a_device_synchronisation_covers_one_device) {
  choose(_i);
  static int request, answer, own_request = 1, own_answer;
  std::thread* const other = new std::thread([] {
    (void)gin::setDevice(1);
    (void)gin::launch(await_and_answer, {1, 4}, &request, &answer);
  });
  other->join();
  delete other;
  ck_assert_int_eq(gin::launch(await_and_answer, {1, 4}, &own_request, &own_answer), ginSuccess);
  ck_assert_int_eq(gin::deviceSynchronize(), ginSuccess);
  ck_assert_int_eq(own_answer, 1);
  ck_assert_int_eq(gin::atomic_ref<int>(answer).load(), 0);
  set_flag(&request, 1);
  ck_assert_int_eq(gin::setDevice(1), ginSuccess);
  ck_assert_int_eq(gin::deviceSynchronize(), ginSuccess);
  ck_assert_int_eq(answer, 1);
}
END_TEST

struct Counted {
  explicit Counted(int* counter) : alive(counter) { ++*alive; }
  Counted(const Counted& other) : alive(other.alive) {
    __atomic_fetch_add(alive, 1, __ATOMIC_SEQ_CST);
  }
  Counted& operator=(const Counted&) = delete;
  ~Counted() { __atomic_fetch_sub(alive, 1, __ATOMIC_SEQ_CST); }
  int* alive;
};

__global__ void take(Counted value, const double real, long whole, int* out) {
  if (threadIdx.x == 0)
    *out = static_cast<int>(real * 2) + static_cast<int>(whole) + (value.alive != nullptr);
}

START_TEST(arguments_are_converted_copied_and_destroyed) {
  choose(_i);
  static int alive, out;
  {
    const Counted mine(&alive);
    ck_assert_int_eq(gin::launch(take, {1, 8}, mine, 3, 'a', &out), ginSuccess);
    ck_assert_int_eq(gin::launch(take, {0, 8}, mine, 3, 'a', &out), ginInvalidArgument);
  }
  ck_assert_int_eq(gin::streamSynchronize(nullptr), ginSuccess);
  ck_assert_int_eq(out, 6 + 'a' + 1);
  ck_assert_int_eq(alive, 0);
}
END_TEST

START_TEST(any_callable_is_a_kernel) {
  choose(_i);
  static int sum;
  int step = 2;
  ck_assert_int_eq(run([step](int* word) { atomicAdd(word, step); }, {3, 10}, &sum), ginSuccess);
  ck_assert_int_eq(sum, 60);
}
END_TEST

__global__ void nothing() {}

START_TEST(configurations_that_are_not_allowed_are_refused_with_a_sentence) {
  choose(_i);
  const struct {
    gin::LaunchConfig config;
    bool cooperative;
    const char* sentence;
  } cases[] = {
      {{dim3(0), 1}, false, "kernel nothing: the grid is (0,1,1); allowed is 1 to"},
      {{dim3(1, 70000), 1}, false, "the grid is (1,70000,1)"},
      {{1, dim3(0)}, false, "the block is (0,1,1); allowed is 1 to 1024 threads"},
      {{1, dim3(1025)}, false, "the block is (1025,1,1)"},
      {{1, dim3(32, 33)}, false, "the block is (32,33,1)"},
      {{1, dim3(1, 1, 65)}, false, "the block is (1,1,65)"},
      {{1, dim3(1u << 31, 1u << 31, 4)}, false, "allowed is 1 to 1024 threads"},
      {{1, 1, 232449}, false, "shared_bytes is 232449; allowed is 0 to 232448"},
      {{1, 1, 0, reinterpret_cast<gin::Stream>(8)}, false, "0x8 is not a stream"},
      {{33, 1024},
       true,
       has_fibers(_i) ? "the cooperative grid is 33 blocks of 1024 threads"
                      : "33 blocks of 1024; allowed is 256 in all"},
      {{5000, 1},
       true,
       has_fibers(_i) ? "what runs at the same time, 4096 blocks and"
                      : "5000 blocks of 1; allowed is 256 in all"},
  };
  for (const auto& test : cases) {
    ginResult_t result;
    std::string said;
    {
      const CapturedStderr captured;
      result = test.cooperative ? gin::launchCooperative(nothing, test.config)
                                : gin::launch(nothing, test.config);
      said = captured.text();
    }
    ck_assert_int_eq(result, ginInvalidArgument);
    ck_assert_msg(said.find(test.sentence) != std::string::npos, "'%s' is not in: %s",
                  test.sentence, said.c_str());
    ck_assert_msg(said.find('\n') == said.size() - 1, "more than a line: %s", said.c_str());
  }
  ck_assert_int_eq(run(nothing, {1, dim3(16, 4, 4)}), ginSuccess);
}
END_TEST

__global__ void throw_in_one(int* later) {
  if (blockIdx.x == 1 && threadIdx.x == 3) throw std::runtime_error("out of cheese");
  __syncthreads();
  await_flag(later, 7);  // never: only the end of the launch frees the others
}

__global__ void write(int* place, int value) {
  *place = value;
}

START_TEST(an_exception_that_leaves_a_kernel_ends_its_launch) {
  choose(_i);
  static int never, place;
  ginResult_t results[4];
  std::string said;
  {
    const CapturedStderr captured;
    results[0] = gin::launch(throw_in_one, {3, 33}, &never);
    results[1] = gin::launch(write, {1, 1}, &place, 1);
    results[2] = gin::streamSynchronize(nullptr);
    said = captured.text();
  }
  ck_assert_int_eq(results[0], ginSuccess);
  ck_assert_int_eq(results[1], ginSuccess);
  ck_assert_int_eq(results[2], ginUnhandledCudaError);
  ck_assert_msg(said.find("an exception left thread (3,0,0) of block (1,0,0) of kernel "
                          "throw_in_one: out of cheese") != std::string::npos,
                "%s", said.c_str());
  ck_assert_int_eq(place, 0);  // it stood behind the failed one
  ck_assert_int_eq(run(write, {1, 1}, &place, 2), ginSuccess);
  ck_assert_int_eq(place, 2);
}
END_TEST

__global__ void fail_here(int* never) {
  if (threadIdx.x == 2) gin::impl::end_kernel(ginRemoteError, "rank 5 is gone");
  if (threadIdx.x == 4) __syncwarp(0xffff0000u & ~(1u << 4));
  __syncthreads();
  await_flag(never, 7);
}

START_TEST(a_kernel_ends_its_launch_with_a_result_of_its_choice) {
  choose(_i);
  static int never;
  ginResult_t result;
  std::string said;
  {
    const CapturedStderr captured;
    result = run(fail_here, {2, 3}, &never);
    said = captured.text();
  }
  ck_assert_int_eq(result, ginRemoteError);
  ck_assert_msg(said.find("of kernel fail_here: rank 5 is gone") != std::string::npos, "%s",
                said.c_str());
}
END_TEST

/// In each block other threads are caught in another kind of loop.
__global__ void fail_silently(int* never) {
  if (blockIdx.x == 0 && threadIdx.x == 0) gin_exec_fail(ginTimeout, nullptr);
  if (blockIdx.x == 1) {
    for (;;) __syncthreads();
  }
  if (blockIdx.x == 2) {
    for (;;) __nanosleep(100);
  }
  if (blockIdx.x == 3) {
    const gin::atomic_ref<int> word(*never);
    while (word.load(gin::memory_order_relaxed) == 0) {
    }
  }
  await_flag(never, 7);
}

START_TEST(a_launch_can_end_without_a_sentence) {
  choose(_i);
  static int never;
  for (const unsigned threads : {1u, 3u}) {
    ginResult_t result;
    std::string said;
    {
      const CapturedStderr captured;
      result = run(fail_silently, {5, threads}, &never);
      said = captured.text();
    }
    ck_assert_int_eq(result, ginTimeout);
    ck_assert_str_eq(said.c_str(), "");
  }
}
END_TEST

__global__ void wrong_mask() {
  __syncwarp(threadIdx.x == 4 ? 0xffff0000u : 0xffffffffu);
}
__global__ void wrong_barrier() {
  gin_exec_sync_named(16, 64);
}
__global__ void too_much_shared() {
  GIN_SHARED(char[30000], a);
  GIN_SHARED(char[30000], b);
  a[threadIdx.x] = b[threadIdx.x] = 1;
}
__global__ void unlike_barriers() {
  if (threadIdx.x < 3) {
    __syncthreads();
  } else {
    __syncwarp();
  }
}
__global__ void lonely_span() {
  if (threadIdx.x < 32) gin_exec_sync_named(3, 64);
}
__global__ void trap() {
  if (threadIdx.x == 1) __trap();
}

START_TEST(kernels_that_can_never_end_or_break_a_rule_say_so) {
  choose(_i);
  const struct {
    void (*kernel)();
    ginResult_t result;
    const char* sentence;
  } cases[] = {
      {wrong_mask, ginInvalidArgument,
       "thread (4,0,0) of block (0,0,0) of kernel wrong_mask synchronises its warp with mask "
       "0xffff0000, in which it is not itself"},
      {wrong_barrier, ginInvalidArgument,
       "uses barrier 16 of 64 threads; allowed are barriers 0 to 15"},
      {too_much_shared, ginInvalidArgument, "declares 30000 more bytes of block-shared memory"},
      {unlike_barriers, ginUnhandledCudaError,
       "block (0,0,0) of kernel unlike_barriers can't go on, all its threads wait for each other: "
       "3 "
       "threads at __syncthreads, 29 threads at a barrier or exchange of their warp"},
      {lonely_span, ginUnhandledCudaError, "32 threads at barrier 3 of 64 threads"},
      {trap, ginUnhandledCudaError, "the kernel called __trap"},
  };
  for (const auto& test : cases) {
    ginResult_t result;
    std::string said;
    {
      const CapturedStderr captured;
      result = run(test.kernel, {1, 64});
      said = captured.text();
    }
    ck_assert_msg(said.find(test.sentence) != std::string::npos, "'%s' is not in: %s",
                  test.sentence, said.c_str());
    ck_assert_int_eq(result, test.result);
  }
}
END_TEST

__global__ void wait_with_note(int* word) {
  const gin_exec_note note = {"waitSignal", "signal", threadIdx.x / 4, 9, 3, 1};
  while (gin::impl::load(word, gin::memory_order_acquire) != 9) {
    gin_exec_set_note(&note);
    gin_exec_wait(word, 4);
  }
  gin_exec_set_note(nullptr);
}

START_TEST(a_long_wait_says_who_waits_for_what) {
  choose(_i);
  ::setenv("GIN_WAIT_REPORT", "0.2", 1);
  static int word;
  std::string said;
  {
    const CapturedStderr captured;
    ck_assert_int_eq(gin::launch(wait_with_note, {2, 8}, &word), ginSuccess);
    while (!captured.has("block (0,0,0), thread (0,0,0)") ||
           !captured.has("block (1,0,0), thread (4,0,0)")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    set_flag(&word, 9);
    ck_assert_int_eq(gin::streamSynchronize(nullptr), ginSuccess);
    said = captured.text();
  }
  ck_assert_msg(
      said.find("rank 3: kernel wait_with_note, block (0,0,0), thread (0,0,0) and 3 more: "
                "waitSignal has waited ") != std::string::npos,
      "%s", said.c_str());
  ck_assert_msg(said.find("for signal 1 from rank 1: it is 4, awaited is 9") != std::string::npos,
                "%s", said.c_str());
}
END_TEST

[[gnu::noinline]] int spin_on(const volatile int* flag) {
  while (*flag == 0) {
  }
  return *flag;
}

__global__ void hold_worker(int* flag) {
  if (threadIdx.x == 1) *flag = spin_on(flag) + 1;
}

START_TEST(a_thread_that_never_gives_way_is_named_with_its_stack) {
  if (GIMLET_TSAN != 0) return;  // a race, which is the point
  choose(_i);
  static int flag;
  std::string said;
  struct sigaction before {};
  ::sigaction(SIGPROF, nullptr, &before);
  {
    const CapturedStderr captured;
    ck_assert_int_eq(gin::launch(hold_worker, {1, 4}, &flag), ginSuccess);
    const std::string who = "thread (1,0,0) of block (0,0,0) of kernel hold_worker";
    while (!captured.has(who + " has run for 5 s") || !captured.has(who + ", frame 1: "))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    *const_cast<volatile int*>(&flag) = 1;
    ck_assert_int_eq(gin::streamSynchronize(nullptr), ginSuccess);
    said = captured.text();
  }
  ck_assert_msg(said.find(", frame 0: spin_on (") != std::string::npos, "%s", said.c_str());
  ck_assert_msg(said.find(", frame 1: hold_worker (") != std::string::npos, "%s", said.c_str());
  struct sigaction after {};
  ::sigaction(SIGPROF, nullptr, &after);
  ck_assert(after.sa_handler == before.sa_handler);
}
END_TEST

/// Needs about 1 KiB a level.
[[gnu::noinline]] int descend(int levels, volatile int* sink) {
  volatile char frame[1000];
  frame[levels % 1000] = static_cast<char>(levels);
  const int below = levels == 0 ? *sink : descend(levels - 1, sink);
  return below + frame[levels % 1000];
}

__global__ void go_deep(int levels, int* sink) {
  if (threadIdx.x == 3) *sink = descend(levels, sink);
}

__global__ void write_nowhere(int* nowhere) {
  if (threadIdx.x == 1) *const_cast<volatile int*>(nowhere) = 1;
}

void exit_with_42(int) {
  ::_exit(42);
}

/// The wait status of a child that runs `kernel`, and what it said.
template <class Kernel, class... Args>
int status_of_child(int mode, void (*handler)(int), std::string& said, Kernel kernel,
                    Args... args) {
  const CapturedStderr captured;
  const pid_t child = ::fork();
  if (child == 0) {
    choose(mode);
    const rlimit no_file{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_file);
    ::signal(SIGSEGV, handler);
    ::_exit(run(kernel, {2, 8}, args...) == ginSuccess ? 0 : 1);
  }
  int status = -1;
  ck_assert_int_eq(::waitpid(child, &status, 0), child);
  said = captured.text();
  return status;
}

START_TEST(a_stack_that_is_full_is_named) {
  if (GIMLET_ASAN != 0 || GIMLET_TSAN != 0) return;  // they have sentences of their own
  static int sink;
  const std::string sentence = ", thread (3,0,0): its stack of ";
  const std::string setting = " bytes is full; GIN_STACK_SIZE makes the stacks";
  std::string said;
  int status = status_of_child(_i, SIG_DFL, said, go_deep, 100, &sink);
  ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %d", status);
  ck_assert_msg(said.find("gimlet: error: kernel go_deep, block (") != std::string::npos, "%s",
                said.c_str());
  ck_assert_msg(said.find(sentence) != std::string::npos, "%s", said.c_str());
  ck_assert_msg(said.find(setting) != std::string::npos, "%s", said.c_str());

  status = status_of_child(_i, exit_with_42, said, go_deep, 100, &sink);
  ck_assert_msg(said.find(sentence) != std::string::npos, "%s", said.c_str());
  // The program's handler has no stack of its own, so the system ends the process.
  ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %d", status);

  ::setenv("GIN_STACK_SIZE", "256k", 1);
  status = status_of_child(_i, SIG_DFL, said, go_deep, 100, &sink);
  ck_assert_msg(status == 0, "status %d: %s", status, said.c_str());
}
END_TEST

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

bool is_guarded(std::byte* stack) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, exit_with_42);
    *static_cast<volatile std::byte*>(StackPool::low(stack)) = std::byte{1};
    *static_cast<volatile std::byte*>(StackPool::low(stack) - 1) = std::byte{1};
    ::_exit(0);
  }
  int status = -1;
  ck_assert_int_eq(::waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status));
  return WEXITSTATUS(status) == 42;
}

/// The limit of mappings is left to the program, however many stacks there are.
START_TEST(guard_pages_need_no_more_than_half_of_the_mappings) {
  if (gimlet::device::kSanitized) return;  // they have mappings of their own
  std::size_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  for (const StackPool::Guard guard :
       {StackPool::Guard::kLight, StackPool::Guard::kMapping, StackPool::Guard::kNone}) {
    StackPool pool(64 * 1024, guard);
    std::vector<std::byte*> stacks;
    const std::size_t before = mappings();
    ck_assert(pool.take(8192, stacks).ok());
    const bool wanted = guard != StackPool::Guard::kNone;
    for (const std::size_t i : {std::size_t{0}, stacks.size() - 1})
      ck_assert(is_guarded(stacks[i]) == wanted);
    pool.give_back(stacks);
    ck_assert(pool.take(limit / 4 + 1000, stacks).ok());
    ck_assert_uint_le(mappings() - before, limit / 2 + 1000);
    ck_assert(is_guarded(stacks.front()) == wanted);
  }
}
END_TEST

START_TEST(other_faults_of_kernels_are_left_to_the_program) {
  if (GIMLET_ASAN != 0 || GIMLET_TSAN != 0) return;
  std::string said;
  int status = status_of_child(_i, exit_with_42, said, write_nowhere, nullptr);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 42, "status %d", status);
  ck_assert_str_eq(said.c_str(), "");
  status = status_of_child(_i, SIG_DFL, said, write_nowhere, nullptr);
  ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %d", status);
  ck_assert_str_eq(said.c_str(), "");
  const auto raise_it = [] { ::raise(SIGSEGV); };
  status = status_of_child(_i, SIG_DFL, said, raise_it);
  ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %d", status);
  status = status_of_child(_i, exit_with_42, said, raise_it);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 42, "status %d", status);
}
END_TEST

START_TEST(host_calls_are_refused_inside_a_kernel) {
  choose(_i);
  static int results[3];
  std::string said;
  {
    const CapturedStderr captured;
    ck_assert_int_eq(run(
                         [] {
                           results[0] = gin::launch(nothing, {1, 1});
                           results[1] = gin::streamSynchronize(nullptr);
                           gin::Stream stream;
                           results[2] = gin::streamCreate(&stream);
                         },
                         {1, 1}),
                     ginSuccess);
    said = captured.text();
  }
  for (const int result : results) ck_assert_int_eq(result, ginInvalidUsage);
  ck_assert(said.find("gin::launch was called by a kernel") != std::string::npos);
}
END_TEST

START_TEST(device_functions_are_refused_on_the_host) {
  choose(_i);
  ck_assert_ptr_null(gin_exec_self());
  ck_assert_int_eq(gin_exec_yield(), 0);
  ck_assert_int_eq(gin_exec_wait(&_i, 0), 0);
  gin_exec_look(&_i, 0);
  gin_exec_set_note(nullptr);
  gin_exec_wake();
  __syncthreads();  // ends the process
}
END_TEST

START_TEST(a_forked_child_is_refused) {
  choose(_i);
  ck_assert_int_eq(run(nothing, {1, 1}), ginSuccess);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(gin::launch(nothing, {1, 1}) == ginInvalidUsage ? 0 : 1);
  int status = -1;
  ck_assert_int_eq(::waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}
END_TEST

/// A program that returns from main while a kernel runs ends: with a kernel that waits, and, in a
/// fiber or a thread, with one that never gives way.
START_TEST(a_process_ends_while_a_kernel_runs) {
  // A thread that never ends is a leak to the thread sanitizer, and rightly so.
  for (int how = 0; how < (GIMLET_TSAN != 0 ? 1 : 2); ++how) {
    const pid_t child = ::fork();
    if (child == 0) {
      choose(_i);
      static int never;
      const ginResult_t queued = how == 0 ? gin::launch(wait_with_note, {4, 16}, &never)
                                          : gin::launch(hold_worker, {4, 16}, &never);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      std::exit(queued == ginSuccess ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(::waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
  }
}
END_TEST

long switches() {
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

START_TEST(an_idle_executor_never_wakes_up) {
  if (GIMLET_TSAN != 0) return;  // its runtime has a thread that wakes up
  choose(_i);
  ck_assert_int_eq(run(nothing, {8, 32}), ginSuccess);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const long before = switches();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ck_assert_int_le(switches() - before, 3);  // this thread's own sleep is one
}
END_TEST

START_TEST(more_than_256_system_threads_are_refused) {
  choose(_i);
  ck_assert_int_eq(run(nothing, {8, 32}), ginSuccess);
  std::string said;
  {
    const CapturedStderr captured;
    ck_assert_int_eq(gin::launch(nothing, {1, 257}), ginInvalidArgument);
    said = captured.text();
  }
  ck_assert(said.find("1 blocks of 257; allowed is 256 in all while GIN_EXECUTOR is threads") !=
            std::string::npos);
}
END_TEST

enum class Handshake { kRight, kRelaxedStore, kRelaxedLoad, kNoBarrier, kWarpBarrier };

/// Thread 40 of block 0 has data for thread 3 of its block and, through a flag, for block 1.
__global__ void hand_data_over(int* data, int* flag, Handshake how) {
  GIN_SHARED(int, local);
  if (blockIdx.x == 0 && threadIdx.x == 40) {
    local = 5;
    data[0] = 7;
    gin::atomic_ref<int>(*flag).store(
        1, how == Handshake::kRelaxedStore ? gin::memory_order_relaxed : gin::memory_order_release);
  }
  if (how == Handshake::kWarpBarrier) {
    __syncwarp();
  } else if (how != Handshake::kNoBarrier) {
    __syncthreads();
  } else if (threadIdx.x == 3) {
    for (int i = 0; i < 300; ++i) __nanosleep(1000);  // long after, but in no order
  }
  if (how == Handshake::kWarpBarrier && threadIdx.x == 3)
    for (int i = 0; i < 300; ++i) __nanosleep(1000);
  if (blockIdx.x == 0 && threadIdx.x == 3) data[1] = local;
  if (blockIdx.x == 1 && threadIdx.x == 0) {
    const auto order =
        how == Handshake::kRelaxedLoad ? gin::memory_order_relaxed : gin::memory_order_acquire;
    int seen;
    while ((seen = gin::impl::load(flag, order)) == 0) gin::impl::wait_step(flag, seen);
    data[2] = data[0];
  }
}

START_TEST(the_thread_sanitizer_sees_missing_order_between_device_threads) {
  if (GIMLET_TSAN == 0) return;
  for (const Handshake how : {Handshake::kRight, Handshake::kRelaxedStore, Handshake::kRelaxedLoad,
                              Handshake::kNoBarrier, Handshake::kWarpBarrier}) {
    const pid_t child = ::fork();
    if (child == 0) {
      choose(_i);
      static int data[3], flag;
      const CapturedStderr quiet;
      std::exit(run(hand_data_over, {2, 64}, &data[0], &flag, how) == ginSuccess ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(::waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == (how == Handshake::kRight ? 0 : 66),
                  "handshake %d: status %d", static_cast<int>(how), status);
  }
}
END_TEST

Suite* executor_launch_suite() {
  Suite* const suite = suite_create("executor launches");
  TCase* const all = tcase_create("both modes");
  tcase_set_timeout(all, testing::kPatience);
  for (const TTest* const test :
       {launches_of_a_stream_run_in_order, a_launch_is_asynchronous_to_the_host,
        a_destroyed_stream_finishes_its_launches,
        kernels_of_ranks_that_are_threads_wait_for_each_other,
        a_device_synchronisation_covers_one_device, arguments_are_converted_copied_and_destroyed,
        any_callable_is_a_kernel, configurations_that_are_not_allowed_are_refused_with_a_sentence,
        an_exception_that_leaves_a_kernel_ends_its_launch,
        a_kernel_ends_its_launch_with_a_result_of_its_choice, a_launch_can_end_without_a_sentence,
        kernels_that_can_never_end_or_break_a_rule_say_so, a_long_wait_says_who_waits_for_what,
        host_calls_are_refused_inside_a_kernel, a_forked_child_is_refused,
        a_process_ends_while_a_kernel_runs, an_idle_executor_never_wakes_up}) {
    tcase_add_loop_test(all, test, 0, testing::kAllModes);
  }
  tcase_add_loop_test_raise_signal(all, device_functions_are_refused_on_the_host, SIGABRT,
                                   testing::kAllModes - 1, testing::kAllModes);
  suite_add_tcase(suite, all);
  TCase* const fibers = tcase_create("fibers");
  tcase_set_timeout(fibers, testing::kPatience);
  tcase_add_test(fibers, a_thread_that_never_gives_way_is_named_with_its_stack);
  tcase_add_test(fibers, guard_pages_need_no_more_than_half_of_the_mappings);
  tcase_add_loop_test(fibers, a_stack_that_is_full_is_named, 0, testing::kFiberModes);
  tcase_add_loop_test(fibers, other_faults_of_kernels_are_left_to_the_program, 0,
                      testing::kFiberModes);
  suite_add_tcase(suite, fibers);
  TCase* const threads = tcase_create("threads");
  tcase_add_loop_test(threads, more_than_256_system_threads_are_refused, testing::kFiberModes,
                      testing::kAllModes);
  tcase_add_loop_test(threads, the_thread_sanitizer_sees_missing_order_between_device_threads,
                      testing::kFiberModes, testing::kAllModes);
  tcase_set_timeout(threads, testing::kPatience);
  suite_add_tcase(suite, threads);
  return suite;
}

}  // namespace

int main() {
  SRunner* const runner = srunner_create(executor_launch_suite());
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
