// SPDX-License-Identifier: BSD-3-Clause
// launch: none timeout=300
// The ring to the proxy thread, alone: threads post through the functions of the device headers,
// the thread of the test takes with RingConsumer. Links nothing of the library, so that
// tests/unit/ring_mutants can compile it as it likes.
//
// ring_test [--long | --short]: 10^8 requests go through the shared ring instead of 2 * 10^6; or a
// twentieth of everything. (Check counts at most 2147 s: --long wants a machine that is quiet.)
#include "gin/impl/ring.h"

#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "gin/path/proxy/ring_consumer.h"
#include "suite.h"

namespace {

/// Between two looks. There are more threads than cores, perhaps.
void pause_or_yield() {
  static thread_local unsigned looks;
  if (++looks % 16 == 0) {
    ::sched_yield();
  } else {
    __builtin_ia32_pause();
  }
}

}  // namespace

// What the library's part of a wait does otherwise is no matter here.
extern "C" int gin_exec_comm_wait(ginWait*, std::uint64_t) {
  pause_or_yield();
  return 0;
}
extern "C" void gin_exec_comm_fault(const ginDevComm*, const ginFault*) {
  std::abort();
}
extern "C" void gin_exec_comm_trap(const ginDevComm*) {
  std::abort();
}
extern "C" void gin_exec_comm_wake_proxy(const ginDevComm*, std::uint32_t) {}

namespace {

namespace impl = ::gin::impl;
using gimlet::gin::RingConsumer;
using impl::Order;
using impl::RingRequest;

constexpr std::uint64_t kDepth = GIN_RING_LEAST_DEPTH;
constexpr std::uint64_t kLaps = 65535;  // different phases
constexpr std::uint64_t kStallSeconds = 20;
// So that phases start again on the way.
constexpr std::uint64_t kFirst = kDepth * kLaps - 10'000;

std::uint64_t requests = GIN_IMPL_TSAN ? 100'000 : 2'000'000;
std::uint64_t shared_requests = requests;

/// A ring with all that device code needs to use it.
struct TestRing {
  explicit TestRing(std::size_t peers, std::uint64_t first = kFirst)
      : oldest(peers, GIN_RING_NONE) {
    ring.head = ring.credit = progress.consumed = progress.done = first;
    ring.slots = slots.data();
    ring.depth = kDepth;
    ring.progress = &progress;
    ring.oldest = oldest.data();
    ring.parked = &parked;
    comm.rings = &ring;
    comm.error = &error;
  }

  std::array<ginRingSlot, kDepth> slots{};
  ginRingProgress progress{};
  std::vector<std::uint64_t> oldest;
  std::uint32_t parked = 0;
  ginErrorWord error{};
  ginRing ring{};
  ginDevComm comm{};
};

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Request `sequence` of a producer: it says in `peer` and `operand` which it is, and every other
/// field follows from that.
RingRequest made(std::uint32_t producer, std::uint64_t sequence) {
  const std::uint64_t a = mixed(sequence << 8 | producer);
  const std::uint64_t b = mixed(a);
  RingRequest r{};
  r.operation = static_cast<std::uint8_t>(a);
  r.flags = static_cast<std::uint8_t>(a >> 8);
  r.peer = producer;
  r.from_offset = a >> 16;
  r.from_window = static_cast<std::uint16_t>(b);
  r.to_offset = b >> 16;
  r.to_window = static_cast<std::uint16_t>(a ^ b);
  r.length = static_cast<std::uint32_t>(a + b);
  r.counter = static_cast<std::uint16_t>((a + b) >> 32);
  r.signal_place = (a ^ b) >> 16;
  r.signal_window = static_cast<std::uint16_t>((a + b) >> 48);
  r.value = a - b;
  r.operand = sequence;
  r.result = static_cast<std::uint32_t>((a - b) >> 7);
  return r;
}

bool same(const RingRequest& a, const RingRequest& b) {
  return a.operation == b.operation && a.flags == b.flags && a.peer == b.peer &&
         a.from_offset == b.from_offset && a.from_window == b.from_window &&
         a.to_offset == b.to_offset && a.to_window == b.to_window && a.length == b.length &&
         a.counter == b.counter && a.signal_place == b.signal_place &&
         a.signal_window == b.signal_window && a.value == b.value && a.operand == b.operand &&
         a.result == b.result;
}

/// Ends the test when nothing has arrived for long.
class Patience {
 public:
  void moved() { since_ = std::chrono::steady_clock::now(); }
  void still(std::uint64_t taken) const {
    pause_or_yield();
    ck_assert_msg(std::chrono::steady_clock::now() - since_ < std::chrono::seconds(kStallSeconds),
                  "nothing has come since request %llu", static_cast<unsigned long long>(taken));
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

// --- one thread ---------------------------------------------------------------------------------

void survives(const RingRequest& request) {
  for (const std::uint64_t phase : {std::uint64_t{1}, kLaps}) {
    std::uint64_t words[8];
    impl::encode_slot(request, phase, words);
    ck_assert(same(impl::decode_slot(words), request));
    for (int quarter = 0; quarter < 4; ++quarter) {
      ck_assert_uint_eq(words[2 * quarter + 1] >> impl::kOffsetBits, phase);
    }
  }
}

START_TEST(fields_survive_at_their_largest) {
  std::vector<RingRequest> largest(14);
  largest[0].operation = UINT8_MAX;
  largest[1].flags = UINT8_MAX;
  largest[2].peer = UINT32_MAX;
  largest[3].from_offset = impl::kOffsetMask;
  largest[4].from_window = UINT16_MAX;
  largest[5].to_offset = impl::kOffsetMask;
  largest[6].to_window = UINT16_MAX;
  largest[7].length = UINT32_MAX;
  largest[8].counter = UINT16_MAX;
  largest[9].signal_place = impl::kOffsetMask;
  largest[10].signal_window = UINT16_MAX;
  largest[11].value = UINT64_MAX;
  largest[12].operand = UINT64_MAX;
  largest[13].result = UINT32_MAX;
  for (const RingRequest& request : largest) survives(request);
  survives({UINT8_MAX, UINT8_MAX, UINT32_MAX, impl::kOffsetMask, UINT16_MAX, impl::kOffsetMask,
            UINT16_MAX, UINT32_MAX, UINT16_MAX, impl::kOffsetMask, UINT16_MAX, UINT64_MAX,
            UINT64_MAX, UINT32_MAX});
  for (std::uint64_t i = 0; i < 1000; ++i) survives(made(7, i));
}
END_TEST

START_TEST(no_two_laps_in_a_row_have_one_phase) {
  const std::uint64_t turns[] = {kDepth, kDepth * kLaps, std::uint64_t{1} << 32,
                                 std::uint64_t{1} << 62};
  for (const std::uint64_t turn : turns) {
    for (std::uint64_t number = turn - 2 * kDepth; number != turn + 2 * kDepth; ++number) {
      if (number > turn + 2 * kDepth) continue;  // below 0
      const std::uint64_t phase = impl::ring_phase(number, kDepth);
      ck_assert(phase != 0 && phase <= UINT16_MAX);
      ck_assert_uint_ne(phase, impl::ring_phase(number + kDepth, kDepth));
    }
  }
}
END_TEST

/// As many as the ring is deep find room, and then as many as were taken; wherever it stands.
void check_credit(std::uint64_t first, ginResourceSharingMode sharing) {
  auto t = std::make_unique<TestRing>(1, first);
  RingConsumer consumer(t->ring);
  std::uint64_t number = 0;
  for (std::uint64_t i = 0; i < kDepth; ++i) {
    number = impl::reserve_slot(t->ring, sharing);
    ck_assert_uint_eq(number, first + i);
    ck_assert(impl::has_credit(t->ring, number));
    impl::write_slot(t->ring, number, made(0, number));
  }
  for (int round = 0; round < 200; ++round) {
    number = impl::reserve_slot(t->ring, sharing);
    impl::refresh_credit(t->ring);
    ck_assert(!impl::has_credit(t->ring, number));
    RingRequest request{};
    ck_assert(consumer.is_ready());
    ck_assert(consumer.take(request));
    ck_assert(same(request, made(0, number - kDepth)));
    impl::refresh_credit(t->ring);
    ck_assert(!impl::has_credit(t->ring, number));  // not told yet
    consumer.publish_consumed();
    ck_assert(!impl::has_credit(t->ring, number));  // not asked yet
    impl::refresh_credit(t->ring);
    ck_assert(impl::has_credit(t->ring, number));
    ck_assert(!impl::has_credit(t->ring, number + 1));
    impl::write_slot(t->ring, number, made(0, number));
  }
}

START_TEST(room_is_what_was_taken) {
  const std::uint64_t starts[] = {0, kDepth * kLaps - 100, (std::uint64_t{1} << 32) - 100,
                                  (std::uint64_t{1} << 62) - 100};
  for (const std::uint64_t first : starts) {
    check_credit(first, GIN_RESOURCE_SHARING_GPU);
    check_credit(first, GIN_RESOURCE_SHARING_THREAD);
  }
}
END_TEST

START_TEST(slot_waits_for_all_its_quarters) {
  auto t = std::make_unique<TestRing>(1, 0);
  RingConsumer consumer(t->ring);
  std::uint64_t words[8];
  impl::encode_slot(made(0, 0), impl::ring_phase(0, kDepth), words);
  RingRequest request{};
  for (int missing = 0; missing < 4; ++missing) {
    for (int i = 0; i < 8; ++i) t->slots[0].words[i] = i == 2 * missing + 1 ? 0 : words[i];
    ck_assert(!consumer.take(request));
  }
  for (int i = 0; i < 8; ++i) t->slots[0].words[i] = words[i];
  ck_assert(consumer.take(request));
  ck_assert(same(request, made(0, 0)));
  ck_assert(!consumer.take(request));
}
END_TEST

// --- many threads -------------------------------------------------------------------------------

/// Takes everything, looks at every field, and that each producer's requests come once each, in
/// order.
class Judge {
 public:
  explicit Judge(std::size_t producers) : next_(producers) {}

  void see(const RingRequest& request) {
    ck_assert_msg(request.peer < next_.size(), "request of producer %u", request.peer);
    std::uint64_t& next = next_[request.peer];
    ck_assert_msg(request.operand == next, "producer %u: %llu came where %llu was next",
                  request.peer, static_cast<unsigned long long>(request.operand),
                  static_cast<unsigned long long>(next));
    ck_assert_msg(same(request, made(request.peer, next)), "producer %u: %llu has changed",
                  request.peer, static_cast<unsigned long long>(next));
    ++next;
  }
  bool has_seen(std::uint64_t each) const {
    for (const std::uint64_t next : next_) {
      if (next != each) return false;
    }
    return true;
  }

 private:
  std::vector<std::uint64_t> next_;
};

void post_all(const ginDevComm& comm, ginResourceSharingMode sharing, std::uint32_t producer,
              std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) impl::post(comm, 0, sharing, made(producer, i));
}

/// Gives credit in batches of several sizes.
void take_all(RingConsumer& consumer, Judge& judge, std::uint64_t total) {
  Patience patience;
  RingRequest request{};
  for (std::uint64_t taken = 0; taken < total;) {
    const std::uint64_t batch = 1 + mixed(taken) % kDepth;
    std::uint64_t now = 0;
    for (; now < batch && consumer.take(request); ++now) judge.see(request);
    consumer.publish_consumed();
    taken += now;
    now != 0 ? patience.moved() : patience.still(taken);
  }
  ck_assert(!consumer.is_ready());
}

START_TEST(shared_ring_carries_each_once) {
  constexpr std::uint32_t kProducers = 3;
  const std::uint64_t each = (shared_requests + kProducers - 1) / kProducers;
  auto t = std::make_unique<TestRing>(kProducers);
  RingConsumer consumer(t->ring);
  Judge judge(kProducers);
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (std::uint32_t p = 0; p < kProducers; ++p) {
    threads.emplace_back([&t, p, each] { post_all(t->comm, GIN_RESOURCE_SHARING_GPU, p, each); });
  }
  take_all(consumer, judge, kProducers * each);
  for (std::thread& thread : threads) thread.join();
  ck_assert(judge.has_seen(each));
  ck_assert_uint_eq(t->ring.head, kFirst + kProducers * each);
  ck_assert_uint_eq(t->progress.consumed, kFirst + kProducers * each);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("shared ring: %llu requests of %u threads in %.2f s\n",
              static_cast<unsigned long long>(kProducers * each), kProducers, took.count());
}
END_TEST

START_TEST(owned_rings_carry_each_once) {
  const std::uint64_t each = requests / 4;
  auto a = std::make_unique<TestRing>(1);
  auto b = std::make_unique<TestRing>(1);
  RingConsumer consumers[] = {RingConsumer(a->ring), RingConsumer(b->ring)};
  Judge judges[] = {Judge(1), Judge(1)};
  std::thread one([&] { post_all(a->comm, GIN_RESOURCE_SHARING_THREAD, 0, each); });
  std::thread other([&] { post_all(b->comm, GIN_RESOURCE_SHARING_THREAD, 0, each); });
  Patience patience;
  RingRequest request{};
  for (std::uint64_t taken = 0; taken < 2 * each;) {
    const std::uint64_t before = taken;
    for (int i = 0; i < 2; ++i) {
      for (int n = 0; n < 16 && consumers[i].take(request); ++n, ++taken) judges[i].see(request);
      consumers[i].publish_consumed();
    }
    taken != before ? patience.moved() : patience.still(taken);
  }
  one.join();
  other.join();
  ck_assert(judges[0].has_seen(each) && judges[1].has_seen(each));
}
END_TEST

/// Ordinary memory beside each slot, which only the slot's owner may touch: the thread sanitizer
/// says when ownership is passed on without order.
struct Belongings {
  std::array<std::uint64_t, kDepth> number{};
};

void post_with_belongings(TestRing& t, Belongings& belongings, std::uint32_t producer,
                          std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = impl::reserve_slot(t.ring, GIN_RESOURCE_SHARING_GPU);
    while (!impl::has_credit(t.ring, number)) {
      impl::refresh_credit(t.ring);
      if (!impl::has_credit(t.ring, number)) pause_or_yield();
    }
    belongings.number[number % kDepth] = number;
    impl::write_slot(t.ring, number, made(producer, i));
  }
}

START_TEST(slot_has_one_owner_at_a_time) {
  constexpr std::uint32_t kProducers = 3;
  const std::uint64_t each = requests / 20;
  auto t = std::make_unique<TestRing>(kProducers);
  Belongings belongings;
  RingConsumer consumer(t->ring);
  Judge judge(kProducers);
  std::vector<std::thread> threads;
  for (std::uint32_t p = 0; p < kProducers; ++p) {
    threads.emplace_back([&, p] { post_with_belongings(*t, belongings, p, each); });
  }
  Patience patience;
  RingRequest request{};
  for (std::uint64_t taken = 0; taken < kProducers * each;) {
    const std::uint64_t before = taken;
    while (taken - before < kDepth / 2 && consumer.take(request)) {
      judge.see(request);
      std::uint64_t& belonging = belongings.number[(consumer.next() - 1) % kDepth];
      ck_assert_uint_eq(belonging, consumer.next() - 1);
      belonging = 0;
      ++taken;
    }
    consumer.publish_consumed();
    taken != before ? patience.moved() : patience.still(taken);
  }
  for (std::thread& thread : threads) thread.join();
  ck_assert(judge.has_seen(each));
}
END_TEST

/// What requests bring: ordinary memory, one word for each producer.
struct Brought {
  alignas(64) std::uint64_t requests = 0;
};

struct Taken {
  std::uint64_t number;
  std::uint32_t producer;
};

/// Carries a batch out as a proxy does: peers one after the other, last one first.
void carry_out(TestRing& t, const std::vector<Taken>& batch, std::vector<Brought>& brought) {
  for (std::size_t p = brought.size(); p-- > 0;) {
    for (const Taken& taken : batch) {
      if (taken.producer != p) continue;
      ++brought[p].requests;
      std::uint64_t next = GIN_RING_NONE;
      for (auto later = batch.rbegin(); later->number != taken.number; ++later) {
        if (later->producer == p) next = later->number;
      }
      std::atomic_ref(t.oldest[p]).store(next, std::memory_order_release);
    }
  }
}

void serve_until(TestRing& t, std::vector<Brought>& brought, std::uint64_t total) {
  RingConsumer consumer(t.ring);
  Patience patience;
  RingRequest request{};
  std::vector<Taken> batch;
  while (consumer.next() < kFirst + total) {
    batch.clear();
    while (batch.size() < kDepth / 2 && consumer.take(request)) {
      batch.push_back({consumer.next() - 1, request.peer});
      std::atomic_ref oldest(t.oldest[request.peer]);
      if (oldest.load(std::memory_order_relaxed) == GIN_RING_NONE)
        oldest.store(consumer.next() - 1, std::memory_order_release);
    }
    consumer.publish_consumed();
    ::sched_yield();  // who takes consumed for complete shall have time to show it
    carry_out(t, batch, brought);
    consumer.publish_done(consumer.next());
    batch.empty() ? patience.still(consumer.next()) : patience.moved();
  }
}

START_TEST(complete_means_that_it_is_there) {
  constexpr std::uint32_t kProducers = 3;
  const std::uint64_t rounds = requests / 200;
  constexpr std::uint64_t kBurst = 8;
  auto t = std::make_unique<TestRing>(kProducers);
  std::vector<Brought> brought(kProducers);
  std::atomic<std::uint64_t> wrong{0};
  const auto produce = [&](std::uint32_t p) {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      for (std::uint64_t i = 0; i < kBurst; ++i)
        impl::post(t->comm, 0, GIN_RESOURCE_SHARING_GPU, made(p, i));
      const std::uint64_t number = impl::posted_so_far(t->comm, 0);
      if (round % 2 == 0) {
        impl::wait_done(t->comm, 0, number, Order::kAcquire, 0);
      } else {
        impl::wait_peer_done(t->comm, 0, static_cast<int>(p), number, Order::kAcquire);
      }
      if (brought[p].requests != round * kBurst) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t p = 0; p < kProducers; ++p) threads.emplace_back(produce, p);
  serve_until(*t, brought, kProducers * rounds * kBurst);
  for (std::thread& thread : threads) thread.join();
  ck_assert_uint_eq(wrong.load(), 0);
}
END_TEST

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "";
  if (how == "--short") shared_requests = requests /= 20;
  if (how == "--long") shared_requests = 100'000'000;
  return gimlet::tests::run_suite(
      "ring",
      {fields_survive_at_their_largest, no_two_laps_in_a_row_have_one_phase, room_is_what_was_taken,
       slot_waits_for_all_its_quarters, shared_ring_carries_each_once, owned_rings_carry_each_once,
       slot_has_one_owner_at_a_time, complete_means_that_it_is_there},
      how == "--long" ? 3000 : 60);
}
