// SPDX-License-Identifier: BSD-3-Clause
// The proxy threads of a device communicator, with a carrier that the test holds: who serves which
// context, what an error does, and how they end.
#include "gin/path/proxy/proxies.h"

#include <sched.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "device/clock.h"
#include "gin/impl/ring.h"

// After the headers above, whose name `fail` it takes.
#include "suite.h"
#undef fail

namespace {

using gimlet::Status;
using gimlet::gin::ErrorRecord;
using gimlet::gin::Proxies;
using gimlet::gin::Proxy;
using gimlet::gin::ResourceLayout;
using gimlet::gin::RingMemory;
using gimlet::pgas::CarriedRequest;

constexpr int kRanks = 3;
constexpr std::uint64_t kRequests = 2000;  // of a context
constexpr std::uint32_t kDepth = 1024;     // no post() waits
constexpr double kSoon = 0.2;              // seconds

/// Completes each request at once, or holds it until it is told to go on.
class Carrier final : public gimlet::pgas::Carrier {
 public:
  explicit Carrier(bool holds = false) : holds_(holds) {}

  Status add_segment(std::byte*, std::size_t, std::uint16_t&) override {
    ++attached;
    return {};
  }
  Status add_staged_segment(std::byte*, std::size_t, const gimlet::device::MemoryKind&,
                            std::uint16_t&) override {
    return {};
  }
  void remove_segment(std::uint16_t) override { --attached; }
  Status add_listener(Listener listener, std::uint32_t& number) override {
    ++attached;
    number = next_listener_++;
    listeners[number] = std::move(listener);
    return {};
  }
  void remove_listener(std::uint32_t number) override {
    --attached;
    ck_assert_uint_eq(listeners.erase(number), 1);
  }
  bool post(CarriedRequest& request) override {
    const std::scoped_lock lock(mutex_);
    threads[request.lane].insert(std::this_thread::get_id());
    order[request.lane].push_back(request.signal.value);
    if (order[request.lane].size() == 1)
      ck_assert_int_eq(::sched_getaffinity(0, sizeof(cpu_set_t), &places[request.lane]), 0);
    if (holds_) {
      held_.push_back(&request);
    } else {
      request.completed(request, {});
    }
    return true;
  }
  bool post_note(int rank, std::uint32_t, std::span<const std::byte>) override {
    const std::scoped_lock lock(mutex_);
    told.push_back(rank);
    return true;
  }
  bool progress() override { return false; }

  std::size_t held() {
    const std::scoped_lock lock(mutex_);
    return held_.size();
  }
  void release() {
    const std::scoped_lock lock(mutex_);
    for (CarriedRequest* request : std::exchange(held_, {})) request->completed(*request, {});
  }
  std::vector<int> told_ranks() {
    const std::scoped_lock lock(mutex_);
    return told;
  }

  std::atomic<int> attached{0};
  std::map<std::uint32_t, Listener> listeners;
  std::map<std::uint32_t, std::set<std::thread::id>> threads;  // that posted, by lane
  std::map<std::uint32_t, std::vector<std::uint64_t>> order;   // of requests, by lane
  std::vector<int> told;
  std::map<std::uint32_t, cpu_set_t> places;  // of the thread that posted, by lane

 private:
  const bool holds_;
  std::mutex mutex_;
  std::vector<CarriedRequest*> held_;
  std::uint32_t next_listener_ = 1;
};

/// A device communicator as far as proxies see it.
struct World {
  World(Carrier& carrier, std::uint32_t contexts, std::uint32_t contexts_each) {
    ResourceLayout layout;
    layout.contexts = contexts;
    layout.signals_pitch = layout.counters_pitch = 64;
    std::unique_ptr<RingMemory> memory;
    ck_assert(RingMemory::make(layout, kRanks, kDepth, contexts_each, memory).ok());
    Proxy::Setup setup;
    setup.carriers.assign(Proxies::count(contexts, contexts_each), &carrier);
    setup.ranks = kRanks;
    setup.connected = {0, 1, 2};
    setup.is_mapped.assign(kRanks, false);
    setup.windows = &window;
    setup.signals_pitch = setup.counters_pitch = 64;
    setup.error = &error;
    setup.describe = [](const ginFault&) { return "fault"; };
    setup.fail = [this](const ErrorRecord& record, const std::string&) {
      tell();
      if (set_error(error, record)) ++failures;
      proxies->wake();
    };
    ck_assert(Proxies::open(std::move(setup), std::move(memory), proxies).ok());
    proxies->memory().fill(comm);
    comm.error = &error;
    comm.proxy = proxies.get();
    ck_assert(proxies->start(std::vector<Proxy::Address>(kRanks)).ok());
  }

  const ginWindowEntry window{};  // that requests without a payload name
  ginErrorWord error{};
  std::function<void()> tell = [] {};  // what else it takes to fail
  std::atomic<int> failures{0};
  ginDevComm comm{};
  std::unique_ptr<Proxies> proxies;
};

void post_signals(const ginDevComm& comm, std::uint32_t context, std::uint64_t count) {
  gin::impl::RingRequest request{};
  request.operation = ginRingPut;
  request.flags = ginRingIndexSignal | ginRingCounter;
  for (request.value = 0; request.value < count; ++request.value) {
    request.peer = static_cast<std::uint32_t>(request.value % kRanks);
    ck_assert(gin::impl::post(comm, context, GIN_RESOURCE_SHARING_GPU, request));
  }
}

std::uint64_t done_of(const ginDevComm& comm, std::uint32_t context) {
  return gin::impl::load(&comm.rings[context].progress->done, gin::impl::Order::kAcquire);
}

bool await(const std::function<bool()>& condition) {
  for (int look = 0; look < 20000 && !condition(); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

/// The proxy thread of that context.
bool sleeps(const ginDevComm& comm, std::uint32_t context) {
  return gin::impl::load(comm.rings[context].parked, gin::impl::Order::kRelaxed) != 0;
}

/// Each context has one producer.
void serve(std::uint32_t contexts, std::uint32_t contexts_each) {
  Carrier carrier;
  World world(carrier, contexts, contexts_each);
  std::vector<std::thread> producers;
  for (std::uint32_t c = 0; c < contexts; ++c) {
    producers.emplace_back([&world, c] {
      for (int burst = 0; burst < 4; ++burst) {
        if (burst % 2 == 0) ck_assert(await([&] { return sleeps(world.comm, c); }));
        post_signals(world.comm, c, kRequests / 4);
        const std::uint64_t posted = gin::impl::posted_so_far(world.comm, c);
        ck_assert(await([&] { return done_of(world.comm, c) == posted; }));
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  ck_assert_uint_eq(world.proxies->counts().requests, contexts * kRequests);
  ck_assert(world.proxies->stop(10));
  std::set<std::thread::id> all;
  for (std::uint32_t c = 0; c < contexts; ++c) {
    ck_assert_uint_eq(carrier.threads[c].size(), 1);
    ck_assert(carrier.threads[c] == carrier.threads[c / contexts_each * contexts_each]);
    all.insert(*carrier.threads[c].begin());
    ck_assert_uint_eq(carrier.order[c].size(), kRequests);
    for (std::uint64_t i = 0; i < kRequests; ++i)
      ck_assert_uint_eq(carrier.order[c][i], i % (kRequests / 4));
    ck_assert_uint_eq(world.comm.netCounters[c * 8], kRequests);
  }
  ck_assert_uint_eq(all.size(), Proxies::count(contexts, contexts_each));
  world.proxies.reset();
  ck_assert_int_eq(carrier.attached, 0);
}

START_TEST(each_thread_serves_its_contexts) {
  ck_assert_uint_eq(Proxies::count(4, 0), 1);
  ck_assert_uint_eq(Proxies::count(4, 5), 1);
  ck_assert_uint_eq(Proxies::count(4, 1), 4);
  ck_assert_uint_eq(Proxies::count(5, 2), 3);
  serve(1, 1);
  serve(4, 4);
  serve(4, 1);
  serve(5, 2);
}
END_TEST

START_TEST(peers_are_told_once_whoever_fails) {
  for (int by = 0; by < 2; ++by) {
    Carrier carrier;
    World world(carrier, 4, 1);
    for (std::uint32_t c = 0; c < 4; ++c) ck_assert(await([&] { return sleeps(world.comm, c); }));
    if (by == 0) {
      gimlet::pgas::Refusal refusal;
      refusal.rank = 1;
      for (auto& [number, listener] : carrier.listeners) listener.refused(refusal);
    } else {
      ErrorRecord record;
      record.code = ginInternalError;
      set_error(world.error, record);
      world.proxies->wake();
    }
    ck_assert(await([&] { return carrier.told_ranks().size() >= 2; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for a second telling to come
    ck_assert(carrier.told_ranks() == (std::vector<int>{1, 2}));
    ck_assert_int_eq(world.failures, by == 0 ? 1 : 0);
    ck_assert(world.proxies->stop(10));
  }
}
END_TEST

/// Whoever calls a listener may hold the transport, so what an error takes is a proxy's to do. Its
/// end doesn't lose the error.
START_TEST(listeners_wait_for_nothing) {
  Carrier carrier;
  std::atomic<int> told{0};
  std::atomic<bool> may_tell{false};
  {
    World world(carrier, 2, 1);
    world.tell = [&] {
      while (!may_tell) std::this_thread::yield();
      ++told;
    };
    gimlet::pgas::Refusal refusal;
    refusal.rank = 1;
    const auto listener = carrier.listeners.begin()->second;
    listener.refused(refusal);
    listener.noted(1, {});
    listener.refused(refusal);
    ck_assert_int_eq(told, 0);
    may_tell = true;
    ck_assert(world.proxies->stop(10));
  }
  ck_assert_int_eq(told, 1);
}
END_TEST

/// Every thread has requests that nobody completes: all end in bounded time all the same, and what
/// completes later finds its memory, until detach().
START_TEST(open_requests_end_no_thread_late) {
  constexpr std::uint32_t kContexts = 4;
  Carrier carrier(true);
  World world(carrier, kContexts, 1);
  for (std::uint32_t c = 0; c < kContexts; ++c) post_signals(world.comm, c, 10);
  ck_assert(await([&] { return carrier.held() == 10 * kContexts; }));
  const std::uint64_t start = gimlet::device::now_ns();
  ck_assert(!world.proxies->stop(kSoon));
  const double took = static_cast<double>(gimlet::device::now_ns() - start) * 1e-9;
  ck_assert_msg(took >= kSoon && took < 10, "stop() took %.3f s", took);
  ck_assert(carrier.listeners.empty());
  carrier.release();
  world.proxies->detach();
  ck_assert_int_eq(carrier.attached, 0);
}
END_TEST

/// Binds the calling thread to one cpu, as OpenMP and others do with the main thread.
void bind_to_one_cpu() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
  ck_assert_int_eq(::sched_setaffinity(0, sizeof one, &one), 0);
}

START_TEST(threads_are_not_bound_like_their_maker) {
  const gimlet::device::Placement expected = gimlet::device::place_nearby();
  bind_to_one_cpu();
  Carrier carrier;
  World world(carrier, 2, 1);
  for (std::uint32_t c = 0; c < 2; ++c) post_signals(world.comm, c, 1);
  ck_assert(world.proxies->stop(10));
  ck_assert_uint_eq(carrier.places.size(), 2);
  for (const auto& [lane, place] : carrier.places) ck_assert(CPU_EQUAL(&place, &expected.cpus));
  // One node, or several: the caller's is among them.
  ck_assert(CPU_ISSET(static_cast<unsigned>(::sched_getcpu()), &expected.cpus));
  std::printf("proxies run on %s\n", describe(expected).c_str());
}
END_TEST

START_TEST(stop_waits_for_requests) {
  constexpr std::uint32_t kContexts = 3;
  Carrier carrier(true);
  World world(carrier, kContexts, 1);
  for (std::uint32_t c = 0; c < kContexts; ++c) post_signals(world.comm, c, 10);
  std::thread late([&carrier] {
    while (carrier.held() != 10 * kContexts)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for stop() to end too early
    carrier.release();
  });
  ck_assert(world.proxies->stop(20));
  late.join();
  for (std::uint32_t c = 0; c < kContexts; ++c) {
    ck_assert_uint_eq(world.comm.netCounters[c * 8], 10);
    ck_assert_uint_eq(done_of(world.comm, c), 10);
  }
}
END_TEST

}  // namespace

int main() {
  return gimlet::tests::run_suite(
      "proxies", {each_thread_serves_its_contexts, peers_are_told_once_whoever_fails,
                  listeners_wait_for_nothing, open_requests_end_no_thread_late,
                  stop_waits_for_requests, threads_are_not_bound_like_their_maker});
}
