// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_UNIT_UCX_WORLD_H
#define GIMLET_TESTS_UNIT_UCX_WORLD_H

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/clock.h"
#include "device/unique_fd.h"
#include "late_memory.h"
#include "pgas/transport/staging_carrier.h"
#include "pgas/transport/transport.h"
#include "pgas/transport/ucx_transport.h"

/// A few real processes with the UCX transport between them: what a launcher would do is done by a
/// shared mapping.
namespace gimlet::pgas::testing {

inline constexpr int kMaxPes = 16;
inline constexpr std::size_t kSegmentBytes = std::size_t{4} << 20;
inline constexpr std::size_t kSecondBytes = 4096;

/// Ends the PE with a sentence unless `condition` holds.
#define EXPECT(condition)                                                                  \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      std::fprintf(stderr, "PE %d: %s:%d: %s\n", pe.rank, __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                                       \
    }                                                                                      \
  } while (false)

#define EXPECT_OK(expression)                                                                  \
  do {                                                                                         \
    if (::gimlet::Status expected = (expression); !expected.ok()) {                            \
      std::fprintf(stderr, "PE %d: %s:%d: %s: %s\n", pe.rank, __FILE__, __LINE__, #expression, \
                   expected.message().c_str());                                                \
      std::_Exit(1);                                                                           \
    }                                                                                          \
  } while (false)

struct World {
  struct Published {
    std::atomic<std::uint32_t> length{0};
    std::array<std::byte, 4096> bytes{};
  };
  int size = 0;
  std::atomic<int> arrived{0};
  std::atomic<int> round{0};
  std::atomic<int> dead{-1};
  std::array<std::atomic<std::uint64_t>, 64> notes{};
  std::array<pid_t, kMaxPes> pids{};
  std::array<Published, kMaxPes> blobs{};
};

/// The sleeping helper thread of a PE, as the transport's owner runs it.
class Helper {
 public:
  explicit Helper(Transport& transport)
      : stop_(::eventfd(0, EFD_CLOEXEC)), thread_([this, &transport] { run(transport); }) {}
  ~Helper() {
    const std::uint64_t one = 1;
    if (::write(stop_.get(), &one, sizeof one) != sizeof one) std::abort();
    thread_.join();
  }

 private:
  void run(Transport& transport) {
    for (;;) {
      while (transport.progress()) {
      }
      if (!transport.arm()) {
        ::sched_yield();
        continue;
      }
      pollfd fds[2] = {{transport.event_fd(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      if (::poll(fds, 2, -1) > 0 && fds[1].revents != 0) return;
    }
  }

  UniqueFd stop_;
  std::thread thread_;
};

struct Pe {
  int rank = 0;
  int size = 0;
  World* world = nullptr;
  std::byte* memory = nullptr;  // segment 0
  std::byte* second = nullptr;  // segment 1
  std::unique_ptr<ucx::UcxTransport> transport;
  std::unique_ptr<StagingCarrier> staging;  // null: memory is plain
  const device::MemoryKind* kind = nullptr;
  std::unique_ptr<Helper> helper;

  std::uint64_t* words() const { return reinterpret_cast<std::uint64_t*>(memory); }
  std::atomic_ref<std::uint64_t> word(std::size_t index) const {
    return std::atomic_ref<std::uint64_t>(words()[index]);
  }
  Carrier& carrier() const {
    if (staging != nullptr) return *staging;
    return *transport;
  }
  bool progress() const { return carrier().progress(); }
  /// The values of all PEs, by rank.
  std::vector<std::uint64_t> share(std::uint64_t value) const {
    std::atomic<std::uint64_t>* const places = &world->notes[64 - kMaxPes];
    places[rank].store(value);
    barrier();
    std::vector<std::uint64_t> all;
    for (int pe = 0; pe < size; ++pe) all.push_back(places[pe].load());
    barrier();
    return all;
  }
  RemoteAddress at(int pe, std::uint64_t offset, std::uint16_t segment = 0) const {
    return {pe, segment, offset};
  }
  /// Everybody is here; the transport is served meanwhile unless `silent`.
  void barrier(bool silent = false) const {
    const int round = world->round.load(std::memory_order_relaxed);
    if (world->arrived.fetch_add(1) + 1 == size) {
      world->arrived.store(0);
      world->round.fetch_add(1);
      return;
    }
    while (world->round.load() == round) {
      if (!silent) progress();
      ::sched_yield();
    }
  }
  template <class Done>
  void await(Done&& done, bool silent = false) const {
    while (!done()) {
      if (!silent) progress();
      ::sched_yield();
    }
  }
  /// Looks as fast as it can while the helper thread serves.
  template <class Done>
  void watch(Done&& done) const {
    for (unsigned look = 1; !done(); ++look)
      if (look % 4096 == 0) ::sched_yield();
  }
};

struct Options {
  int pes = 2;
  const char* tls = "posix";
  bool helpers = false;
  ucx::BulkPath bulk = ucx::BulkPath::kDetect;
  int killed = -1;       // this PE is expected to be killed
  bool reported = true;  // and the others are told so
  int mute = -1;         // this PE publishes nothing
  double connect_timeout = 20;
  std::size_t staged_pieces = 0;  // not 0: memory that nobody may touch, and so much bounce memory
};

inline std::byte* map_pages(std::size_t bytes) {
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(pages);
}

inline Status start_pe(Pe& pe, const Options& options) {
  pe.memory = map_pages(kSegmentBytes);
  pe.second = map_pages(kSecondBytes);
  const LocalSegment segments[] = {{pe.memory, kSegmentBytes}, {pe.second, kSecondBytes}};
  TransportOwner owner;
  owner.rank = pe.rank;
  owner.size = pe.size;
  owner.segments = segments;
  owner.connect_timeout = options.connect_timeout;
  const std::size_t bounce_bytes = options.staged_pieces * BouncePool::kPieceBytes;
  if (options.staged_pieces != 0) owner.bounce_bytes = bounce_bytes;
  World* world = pe.world;
  owner.find_blob = [world](int peer, std::vector<std::byte>& blob, Status&) {
    const World::Published& published = world->blobs[static_cast<std::size_t>(peer)];
    const std::uint32_t length = published.length.load(std::memory_order_acquire);
    if (length == 0) return TransportOwner::Lookup::kPending;
    blob.assign(published.bytes.begin(), published.bytes.begin() + length);
    return TransportOwner::Lookup::kReady;
  };
  owner.dead_peer = [world] { return world->dead.load(std::memory_order_relaxed); };
  std::vector<std::byte> blob;
  pe.transport = std::make_unique<ucx::UcxTransport>(owner, options.bulk);
  GIMLET_TRY(pe.transport->open(blob));
  if (options.staged_pieces != 0) {
    pe.kind = &gimlet::tests::late_memory();
    GIMLET_TRY(
        StagingCarrier::make(bounce_bytes, *pe.transport, std::span(&pe.kind, 1), pe.staging));
  }
  World::Published& mine = world->blobs[static_cast<std::size_t>(pe.rank)];
  if (blob.size() > mine.bytes.size())
    return fail(Code::kInternal, "a blob of {} bytes", blob.size());
  std::memcpy(mine.bytes.data(), blob.data(), blob.size());
  // Release: find_blob's acquire load sees the bytes.
  if (pe.rank != options.mute)
    mine.length.store(static_cast<std::uint32_t>(blob.size()), std::memory_order_release);
  if (options.helpers) pe.helper = std::make_unique<Helper>(*pe.transport);
  return {};
}

/// Runs `body` in each PE's process. Returns how many PEs did not end well.
inline int run_pes(const Options& options, const std::function<void(Pe&)>& body) {
  void* shared =
      ::mmap(nullptr, sizeof(World), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return options.pes;
  World& world = *new (shared) World;
  world.size = options.pes;
  const pid_t parent = ::getpid();
  for (int rank = 0; rank < options.pes; ++rank) {
    const pid_t child = ::fork();
    if (child != 0) {
      world.pids[static_cast<std::size_t>(rank)] = child;
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) std::_Exit(1);
    ::alarm(25);
    ::setenv("UCX_TLS", options.tls, 1);
    // It would wake a helper whose wake-up was lost, before the alarm tells.
    ::setenv("UCX_KEEPALIVE_INTERVAL", "inf", 1);
    Pe pe;
    pe.rank = rank;
    pe.size = options.pes;
    pe.world = &world;
    EXPECT_OK(start_pe(pe, options));
    body(pe);
    if (options.killed < 0) pe.barrier();
    pe.helper.reset();
    pe.staging.reset();
    pe.transport.reset();
    std::_Exit(0);
  }
  int failures = 0;
  for (int ended = 0; ended < options.pes; ++ended) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, 0);
    int rank = 0;
    while (rank < options.pes && world.pids[static_cast<std::size_t>(rank)] != pid) ++rank;
    if (rank == options.pes) continue;  // no PE of ours
    world.pids[static_cast<std::size_t>(rank)] = 0;
    if (rank == options.killed && options.reported) world.dead.store(rank);
    const bool well = rank == options.killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                             : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (well) continue;
    std::fprintf(stderr, "PE %d ended with status 0x%x\n", rank, static_cast<unsigned>(status));
    if (++failures > 1) continue;
    for (const pid_t other : world.pids)
      if (other > 0) ::kill(other, SIGKILL);
  }
  ::munmap(shared, sizeof(World));
  return failures;
}

}  // namespace gimlet::pgas::testing

#endif
