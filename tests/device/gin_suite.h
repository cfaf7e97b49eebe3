// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_GIN_SUITE_H
#define GIMLET_TESTS_GIN_SUITE_H

#include <cstring>
#include <memory>

#include "gin_kernels.h"
#include "gin_ranks.h"

/// What GIN promises, checked by every rank of a communicator, whoever its ranks are.
namespace gin_test {

constexpr unsigned kBlocks = 2;
constexpr int kContexts = 3;
constexpr std::size_t kWindowBytes = 1 << 19;
constexpr std::size_t kAlign = 4096;

class Suite {
 public:
  explicit Suite(const Rank& rank)
      : rank_(rank),
        source_(rank, kWindowBytes),
        dest_(rank, kWindowBytes),
        signals_(rank, 4096),
        result_(kWindowBytes) {
    make_device_comm();
    ring_ = {comm_, source_.handle(), dest_.handle(), signals_.handle(), 0};
    rank_.barrier();
  }
  ~Suite() {
    rank_.barrier();
    must(ginDevCommDestroy(rank_.comm, &comm_), "ginDevCommDestroy");
    if (spoilt_.magic != 0) must(ginDevCommDestroy(rank_.comm, &spoilt_), "ginDevCommDestroy");
  }

  void run() {
    requirements_are_met();
    actions<gin::CoopThread>("thread");
    actions<gin::CoopTile<8>>("tile");
    actions<gin::CoopWarp>("warp");
    actions<gin::CoopLanes>("lanes");
    actions<gin::CoopWarpSpan>("span");
    actions<gin::CoopCta>("block");
    actions<UserCoop>("user");
    sizes();
    strong_signals();
    values();
    gets();
    atomics();
    counters();
    shadow_words();
    barriers();
    barrier_timeouts();
    separate_contexts();
    lsa_pointers();
    EXPECT(async_error(rank_) == ginSuccess, "rank %d", rank_.rank);
  }

 private:
  int previous() const { return (rank_.rank + rank_.ranks - 1) % rank_.ranks; }
  int next() const { return (rank_.rank + 1) % rank_.ranks; }
  static unsigned char pattern(int rank, std::size_t i, unsigned seed) {
    return static_cast<unsigned char>(static_cast<std::size_t>(rank) * 41 + i * 7 + i / 251 + seed);
  }

  void make_device_comm() {
    ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
    requirements.ginConnectionType = GIN_CONNECTION_FULL;
    requirements.ginContextCount = kContexts;
    requirements.ginSignalCount = 5;
    requirements.ginCounterCount = 2;
    requirements.worldGinBarrierCount = 3 * kThreads;
    requirements.railGinBarrierCount = 3;
    must(ginBarrierCreateRequirement(rank_.comm, ginTeamLsa(rank_.comm), 3, &lsa_barrier_,
                                     &list_[0]),
         "ginBarrierCreateRequirement");
    list_[0].next = &list_[1];
    list_[1].bufferSize = 1000;
    list_[1].outBufferHandle = &buffers_[0];
    list_[1].ginSignalCount = 2;
    list_[1].outGinSignalStart = &more_signals_;
    list_[1].next = &list_[2];
    list_[2].bufferSize = 64;
    list_[2].bufferAlign = kAlign;
    list_[2].outBufferHandle = &buffers_[1];
    list_[2].ginCounterCount = 3;
    list_[2].outGinCounterStart = &more_counters_;
    requirements.resourceRequirementsList = list_;
    must(ginDevCommCreate(rank_.comm, &requirements, &comm_), "ginDevCommCreate");
  }

  void requirements_are_met() {
    EXPECT(comm_.rank == rank_.rank && comm_.nRanks == rank_.ranks, "rank %d", rank_.rank);
    EXPECT(comm_.ginContextCount == kContexts, "%u", comm_.ginContextCount);
    EXPECT(more_signals_ >= 5 && more_signals_ + 2 <= comm_.ginSignalCount, "%u", more_signals_);
    EXPECT(more_counters_ >= 2 && more_counters_ + 3 <= comm_.ginCounterCount, "%u",
           more_counters_);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t offset = ginGetResourceBufferOffset(buffers_[i]);
      void* address = nullptr;
      must(ginGetPeerDevicePointer(comm_.resourceWindow, offset, rank_.rank, &address), "pointer");
      EXPECT(reinterpret_cast<std::uintptr_t>(address) % (i == 0 ? 128 : kAlign) == 0, "%p",
             address);
      EXPECT(*static_cast<unsigned char*>(address) == 0, "a resource buffer is not zero");
    }
    EXPECT(
        ginGetResourceBufferOffset(buffers_[1]) >= ginGetResourceBufferOffset(buffers_[0]) + 1000,
        "buffers overlap");
  }

  void fill(unsigned seed) {
    for (std::size_t i = 0; i < source_.size(); ++i) {
      source_.bytes()[i] = pattern(rank_.rank, i, seed);
    }
    std::memset(dest_.bytes(), 0xee, dest_.size());
    rank_.barrier();
  }

  /// [offset, offset + bytes) of the window came from `from`; what lies around it did not change.
  void expect_dest(int from, std::size_t offset, std::size_t bytes, unsigned seed,
                   const char* what) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      wrong += dest_.bytes()[offset + i] != pattern(from, offset + i, seed);
    }
    const bool before = offset == 0 || dest_.bytes()[offset - 1] == 0xee;
    EXPECT(wrong == 0 && before && dest_.bytes()[offset + bytes] == 0xee,
           "%s: rank %d: %zu of %zu bytes at %zu are wrong", what, rank_.rank, wrong, bytes,
           offset);
  }
  void expect_result(std::size_t offset, std::size_t bytes, unsigned seed, const char* what) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      wrong += result_[i] != pattern(previous(), offset + i, seed);
    }
    EXPECT(wrong == 0, "%s: rank %d: a kernel saw %zu of %zu wrong bytes", what, rank_.rank, wrong,
           bytes);
  }

  template <class Coop, class Action>
  void one_put(std::size_t offset, std::size_t slice, Action action, std::uint64_t grows,
               const char* what) {
    const unsigned seed = ++seed_;
    fill(seed);
    run_kernel(put_slices<Coop, Action>, 1, kThreads, ring_, offset, slice, action, grows,
               result_.data());
    const std::size_t bytes = slice * Split<Coop>::count;
    expect_dest(previous(), offset, bytes, seed, what);
    expect_result(offset, bytes, seed, what);
    rank_.barrier();
  }

  template <class Coop>
  void actions(const char* what) {
    const ginWindow_t w = signals_.handle();
    one_put<Coop>(8, 333, gin::WeakSignalInc{1}, 1, what);
    one_put<Coop>(9, 333, gin::StrongSignalInc{1}, 1, what);
    one_put<Coop>(8, 320, gin::WeakSignalAdd{2, 5}, 5, what);
    one_put<Coop>(8, 320, gin::StrongSignalAdd{2, 1ull << 40}, 1ull << 40, what);
    one_put<Coop>(7, 64, gin::WeakVASignalInc{w, 0}, 1, what);
    one_put<Coop>(7, 64, gin::StrongVASignalInc{w, 8}, 1, what);
    one_put<Coop>(0, 65, gin::WeakVASignalAdd{w, 16, 3}, 3, what);
    one_put<Coop>(0, 65, gin::StrongVASignalAdd{w, 4088, 3}, 3, what);
    one_put<Coop>(0, 16, gin::SignalInc{more_signals_}, 1, what);
    one_put<Coop>(0, 16, gin::SignalAdd{more_signals_ + 1, 9}, 9, what);
    one_put<Coop>(0, 16, gin::VASignalInc{w, 24}, 1, what);
    one_put<Coop>(0, 16, gin::VASignalAdd{w, 32, 2}, 2, what);
  }

  void sizes() {
    constexpr std::size_t kSlices[] = {0, 1, 2, 7, 255, 256, 257, 4099, 100003};
    constexpr std::size_t kOffsets[] = {0, 1, 3, 16};
    for (const std::size_t slice : kSlices) {
      for (const std::size_t offset : kOffsets) {
        one_put<gin::CoopCta>(offset, slice, gin::WeakSignalInc{3}, 1, "size by block");
      }
      if (slice < 5000) one_put<gin::CoopThread>(5, slice, gin::WeakSignalInc{3}, 1, "by thread");
      if (slice < 5000) one_put<gin::CoopWarp>(6, slice, gin::WeakSignalInc{3}, 1, "by warp");
    }
  }

  template <class Action>
  void one_strong(Action action, std::uint64_t grows) {
    const unsigned seed = ++seed_;
    constexpr std::size_t kBytes = 5000;
    fill(seed);
    run_kernel(put_then_signal<Action>, 1, kThreads, ring_, kBytes, action, grows, result_.data());
    expect_dest(previous(), 0, kBytes, seed, "put, then strong signal");
    expect_result(0, kBytes, seed, "put, then strong signal");
    rank_.barrier();
  }
  void strong_signals() {
    one_strong(gin::StrongSignalInc{0}, 1);
    one_strong(gin::StrongSignalAdd{0, 77}, 77);
    one_strong(gin::StrongVASignalInc{signals_.handle(), 64}, 1);
    one_strong(gin::SignalInc{0}, 1);  // strong, since ginStrongSignalsRequired is the default
  }

  template <class T>
  void one_value(std::size_t offset, std::size_t stride) {
    fill(++seed_);
    run_kernel(put_values<T>, 1, kThreads, ring_, offset, stride, 4u);
    for (unsigned t = 0; t < kThreads; ++t) {
      T got;
      std::memcpy(&got, dest_.bytes() + offset + t * stride, sizeof got);
      EXPECT(got == static_cast<T>(previous() * 100 + static_cast<int>(t)),
             "a value of %zu bytes at %zu is wrong", sizeof(T), offset + t * stride);
    }
    rank_.barrier();
  }
  void values() {
    one_value<std::uint8_t>(1, 1);
    one_value<std::uint16_t>(2, 2);
    one_value<std::uint32_t>(4, 4);
    one_value<std::uint64_t>(8, 8);
    one_value<double>(16, 24);
    one_value<std::uint32_t>(1, 5);
    one_value<std::uint64_t>(3, 9);
  }

  template <class Coop>
  void one_get(std::size_t offset, std::size_t slice, bool by_request) {
    const unsigned seed = ++seed_;
    fill(seed);
    run_kernel(get_slices<Coop>, 1, kThreads, ring_, offset, slice, by_request);
    expect_dest(next(), offset, slice * Split<Coop>::count, seed, "get");
    rank_.barrier();
  }
  void gets() {
    one_get<gin::CoopThread>(1, 77, false);
    one_get<gin::CoopThread>(0, 128, true);
    one_get<gin::CoopWarp>(0, 1001, false);
    one_get<gin::CoopCta>(3, 70001, true);
    one_get<gin::CoopCta>(0, 0, false);
  }

  /// What all ranks did to the words of rank 0; sums are gathered in the last words of its window.
  template <class T>
  void atomics_of(const char* what) {
    std::memset(dest_.bytes(), 0, dest_.size());
    T* const words = reinterpret_cast<T*>(dest_.bytes());
    words[3] = static_cast<T>(~T(0));
    words[8] = 55;
    rank_.barrier();
    std::vector<T> old(kThreads), swapped(kThreads);
    run_kernel(change_words<T>, 1, kThreads, ring_, old.data(), swapped.data());
    rank_.barrier();
    const auto all = static_cast<T>(rank_.ranks * static_cast<int>(kThreads));
    // What this rank's threads saw must be different values below `all`; sums over ranks are
    // checked by way of the words themselves.
    std::vector<bool> seen(static_cast<std::size_t>(all), false);
    for (const T value : old) {
      const bool fresh = value < all && !seen[static_cast<std::size_t>(value)];
      EXPECT(fresh, "%s: %lld was fetched", what, static_cast<long long>(value));
      if (fresh) seen[static_cast<std::size_t>(value)] = true;
    }
    for (const T value : swapped) EXPECT(value <= all, "%s: a strange mark", what);
    if (rank_.rank != 0) return rank_.barrier();
    T bits = 0, odd = 0;
    for (unsigned t = 0; t < kThreads; ++t) {
      const T bit = static_cast<T>(T(1) << (t % (8 * sizeof(T) - 1)));
      bits = static_cast<T>(bits | bit);
      odd = static_cast<T>(odd ^ bit);
    }
    if (rank_.ranks % 2 == 0) odd = 0;
    EXPECT(words[0] == all && words[1] == static_cast<T>(3 * all), "%s: sums", what);
    EXPECT(words[2] == bits && words[3] == static_cast<T>(~bits) && words[4] == odd, "%s: bits",
           what);
    EXPECT(words[5] == all, "%s: compare and swap lost %lld", what,
           static_cast<long long>(all - words[5]));
    EXPECT(words[6] != 0 && words[6] <= all && words[7] == 77 && words[8] == 55, "%s: swaps", what);
    rank_.barrier();
  }
  void atomics() {
    atomics_of<std::int32_t>("int");
    atomics_of<std::uint64_t>("unsigned long");
  }

  void counters() {
    constexpr std::size_t kBytes = 777;
    constexpr int kRounds = 20;
    fill(++seed_);
    std::uint64_t seen = 0;
    run_kernel(reuse_source, 1, kThreads, ring_, kBytes, kRounds, &seen);
    EXPECT(seen == kRounds, "counter %llu", static_cast<unsigned long long>(seen));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kBytes * kRounds; ++i) wrong += dest_.bytes()[i] != i / kBytes;
    EXPECT(wrong == 0, "%zu bytes were sent after their source changed", wrong);
    rank_.barrier();
  }

  void shadow_words() {
    std::uint64_t out[6] = {};
    run_kernel(shadows, 1, kThreads, ring_, 2u, out);
    const std::uint64_t expected[6] = {300, 7, 307, 307, 307 & 0xff, 0};
    for (int i = 0; i < 6; ++i) {
      EXPECT(out[i] == expected[i], "[%d] %llu", i, static_cast<unsigned long long>(out[i]));
    }
    std::uint64_t rolled = 0;
    run_kernel(rolling, 1, kThreads, ring_, 2u, &rolled);
    EXPECT(rolled == 4, "%llu", static_cast<unsigned long long>(rolled));
  }

  template <class Coop>
  void barriers_by(unsigned blocks, const char* what) {
    const ginTeam_t lsa = ginTeamLsa(rank_.comm);
    const ginTeam_t rail = ginTeamRail(rank_.comm);
    const ginTeam_t world = ginTeamWorld(rank_.comm);
    const auto put_get = gin::FenceLevel::Put | gin::FenceLevel::Get;
    for (const gin::FenceLevel fence : {gin::FenceLevel::Put, gin::FenceLevel::Get, put_get}) {
      one_barrier<Coop>(world, {}, 1, fence, blocks, what);
      if (Split<Coop>::count != 1) continue;
      one_barrier<Coop>(rail, {}, 2, fence, blocks, what);
      one_barrier<Coop>(lsa, lsa_barrier_, 0, fence, blocks, what);
    }
  }
  template <class Coop>
  void one_barrier(ginTeam_t team, ginBarrierHandle_t handle, int tag, gin::FenceLevel fence,
                   unsigned blocks, const char* what) {
    int wrong = 0;
    rank_.barrier();
    run_kernel(barrier_rounds<Coop>, blocks, kThreads, ring_, team, handle, tag, fence, 5, &wrong);
    EXPECT(wrong == 0, "barrier by %s: rank %d: %d wrong", what, rank_.rank, wrong);
    rank_.barrier();
  }
  void barriers() {
    barriers_by<gin::CoopThread>(1, "thread");
    barriers_by<gin::CoopTile<16>>(1, "tile");
    barriers_by<gin::CoopWarp>(2, "warp");
    barriers_by<gin::CoopWarpSpan>(2, "span");
    barriers_by<gin::CoopCta>(kBlocks, "block");
  }

  /// Uses a device communicator of its own: its barrier is spoilt afterwards. It stays until
  /// signals that nobody waited for must have come.
  void barrier_timeouts() {
    ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
    requirements.ginConnectionType = GIN_CONNECTION_FULL;
    requirements.worldGinBarrierCount = 1;
    Ring ring = ring_;
    must(ginDevCommCreate(rank_.comm, &requirements, &spoilt_), "ginDevCommCreate");
    ring.comm = spoilt_;
    std::vector<int> results(kThreads, -1);
    run_kernel(lonely_barrier, 1, kThreads, ring, std::uint64_t{50'000'000}, results.data());
    for (const int result : results) {
      EXPECT(result == (rank_.rank == 0 ? -1 : ginTimeout), "rank %d: %d", rank_.rank, result);
    }
    rank_.barrier();
    EXPECT(async_error(rank_) == ginSuccess, "a barrier's own timeout is no error");
  }

  void separate_contexts() {
    ginDevCommRequirements_t requirements = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
    requirements.ginConnectionType = GIN_CONNECTION_FULL;
    requirements.ginContextCount = 4;
    requirements.ginSignalCount = 1;
    requirements.worldGinBarrierCount = 1;
    Ring ring = ring_;
    must(ginDevCommCreate(rank_.comm, &requirements, &ring.comm), "ginDevCommCreate");
    std::uint64_t values[4] = {};
    run_kernel(contexts, 1, kThreads, ring, 0u, values);
    for (unsigned c = 0; c < 4; ++c) {
      EXPECT(values[c] == c + 1, "context %u: %llu", c, static_cast<unsigned long long>(values[c]));
    }
    rank_.barrier();
    must(ginDevCommDestroy(rank_.comm, &ring.comm), "ginDevCommDestroy");
  }

  void lsa_pointers() {
    int wrong = 0;
    fill(++seed_);
    run_kernel(lsa_stores, 1, kThreads, ring_, &wrong);
    EXPECT(wrong == 0, "rank %d: %d", rank_.rank, wrong);
    rank_.barrier();
  }

  const Rank& rank_;
  TestWindow source_;
  TestWindow dest_;
  TestWindow signals_;
  std::vector<unsigned char> result_;
  ginDevComm comm_{};
  ginDevComm spoilt_{};
  Ring ring_{};
  unsigned seed_ = 0;
  ginDevResourceRequirements_t list_[3] = {};
  ginBarrierHandle_t lsa_barrier_{};
  ginDevResourceHandle_t buffers_[2] = {};
  ginSignal_t more_signals_ = 0;
  ginCounter_t more_counters_ = 0;
};

}  // namespace gin_test

#endif
