// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_GIN_RANKS_H
#define GIMLET_TESTS_GIN_RANKS_H

#include <gin/gin.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace gin_test {

inline std::atomic<int> failures{0};

/// Counts and prints a failure; the test goes on.
#define EXPECT(condition, ...)                                             \
  do {                                                                     \
    if (!(condition)) {                                                    \
      gin_test::failures.fetch_add(1);                                     \
      std::fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      std::fprintf(stderr, __VA_ARGS__);                                   \
      std::fputc('\n', stderr);                                            \
    }                                                                      \
  } while (false)

/// A call without which nothing else makes sense.
inline void must(ginResult_t result, const char* what) {
  if (result == ginSuccess) return;
  std::fprintf(stderr, "%s: %s (%s)\n", what, ginGetErrorString(result), ginGetLastError());
  std::_Exit(99);
}

/// One rank of a test: its communicator and a barrier of the host threads of all ranks.
struct Rank {
  ginComm_t comm;
  int rank;
  int ranks;
  std::function<void()> barrier;
};

/// Runs `body` in `ranks` threads of this process, each with its own communicator handle.
template <class Body>
void run_threads(int ranks, Body body) {
  std::vector<ginComm_t> comms(static_cast<std::size_t>(ranks));
  must(ginCommInitAll(comms.data(), ranks, nullptr), "ginCommInitAll");
  std::barrier meeting(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      must(gin::setDevice(r), "setDevice");
      Rank rank{comms[static_cast<std::size_t>(r)], r, ranks, [&] { meeting.arrive_and_wait(); }};
      body(rank);
      meeting.arrive_and_wait();
      must(ginCommDestroy(rank.comm), "ginCommDestroy");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Memory of this rank that all ranks reach as one window.
class TestWindow {
 public:
  TestWindow(const Rank& rank, std::size_t bytes) : comm_(rank.comm), bytes_(bytes) {
    must(ginMemAlloc(&memory_, bytes), "ginMemAlloc");
    must(ginCommWindowRegister(comm_, memory_, bytes, &window_, GIN_WIN_STRICT_ORDERING),
         "ginCommWindowRegister");
  }
  TestWindow(const TestWindow&) = delete;
  TestWindow& operator=(const TestWindow&) = delete;
  ~TestWindow() {
    must(ginCommWindowDeregister(comm_, window_), "ginCommWindowDeregister");
    must(ginMemFree(memory_), "ginMemFree");
  }
  ginWindow_t handle() const { return window_; }
  unsigned char* bytes() const { return static_cast<unsigned char*>(memory_); }
  std::uint64_t* words() const { return static_cast<std::uint64_t*>(memory_); }
  std::size_t size() const { return bytes_; }

 private:
  ginComm_t comm_;
  std::size_t bytes_;
  void* memory_ = nullptr;
  ginWindow_t window_ = nullptr;
};

/// Launches and waits; errors of the kernel are the caller's to ask for.
template <class Kernel, class... Args>
void run_kernel(Kernel kernel, unsigned blocks, unsigned threads, Args... args) {
  must(gin::launch(kernel, {blocks, threads}, args...), "launch");
  must(gin::streamSynchronize(nullptr), "streamSynchronize");
}

inline ginResult_t async_error(const Rank& rank) {
  ginResult_t result = ginSuccess;
  must(ginCommGetAsyncError(rank.comm, &result), "ginCommGetAsyncError");
  return result;
}

/// The same once there is one, or after a while: what happens on another rank comes through a proxy
/// in its own time.
inline ginResult_t awaited_error(const Rank& rank) {
  for (int look = 0; look < 20000 && async_error(rank) == ginSuccess; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // In the moment of writing a word says ginInternalError.
  for (int look = 0; look < 100 && async_error(rank) == ginInternalError; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return async_error(rank);
}

/// Does device code of this rank reach another one by way of a proxy?
inline bool is_proxied(const Rank& rank, int peer) {
  const char* path = nullptr;
  must(ginCommGetPeerPath(rank.comm, peer, &path), "ginCommGetPeerPath");
  return std::strcmp(path, "proxy") == 0;
}

}  // namespace gin_test

#endif
