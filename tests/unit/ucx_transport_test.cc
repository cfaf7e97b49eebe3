// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "ucx_stranger.h"
#include "ucx_world.h"
// After the world, whose macros it uses.
#include "carrier_cases.h"
// After the others: Check defines a macro named fail.
#include "suite.h"

namespace {

using namespace gimlet;
using namespace gimlet::pgas;
using testing::kSecondBytes;
using testing::kSegmentBytes;
using testing::Options;
using testing::Pe;
using testing::run_pes;
using testing::Stranger;
using ucx::BulkPath;

/// What most tests run over: both networks, each with both ways to move long transfers.
struct Path {
  const char* tls;
  BulkPath bulk;
};
constexpr Path kPaths[] = {{"posix", BulkPath::kAsMessages},
                           {"tcp", BulkPath::kAsMessages},
                           {"posix", BulkPath::kNative},
                           {"tcp", BulkPath::kNative}};
constexpr int kPathCount = 4;
constexpr int kNetworkCount = 2;  // the first of kPaths

Options over(int path, int pes = 2) {
  Options options;
  options.pes = pes;
  options.tls = kPaths[path].tls;
  options.bulk = kPaths[path].bulk;
  return options;
}

std::byte pattern(std::size_t i, unsigned seed) {
  return static_cast<std::byte>((i * 31 + i / 251 + seed * 97) & 0xff);
}

void fill(std::byte* place, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i) place[i] = pattern(i, seed);
}

bool holds(const std::byte* place, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (place[i] != pattern(i, seed)) return false;
  return true;
}

bool contains(const Status& status, std::string_view words) {
  return !status.ok() && status.message().find(words) != std::string::npos;
}

constexpr std::size_t kSizes[] = {0,    1,     2,     3,     4,      7,      8,
                                  13,   64,    100,   1000,  4095,   7999,   8100,
                                  8192, 10001, 65536, 65537, 262143, 1 << 20};

void move_all_sizes(Pe& pe) {
  const int peer = pe.rank ^ 1;
  std::vector<std::byte> mine(1 << 20), back(1 << 20);
  EXPECT(pe.transport->endpoints() == 0);
  unsigned seed = 0;
  for (const std::size_t bytes : kSizes) {
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{5}}) {
      const std::uint64_t place = (static_cast<std::uint64_t>(pe.rank) << 21) + offset;
      fill(mine.data(), bytes, ++seed);
      EXPECT_OK(pe.transport->put(pe.at(peer, place), mine.data(), bytes));
      EXPECT_OK(pe.transport->quiet());
      EXPECT_OK(pe.transport->get(back.data(), pe.at(peer, place), bytes));
      EXPECT(holds(back.data(), bytes, seed));
      pe.barrier();
      const std::uint64_t theirs = (static_cast<std::uint64_t>(peer) << 21) + offset;
      EXPECT(holds(pe.memory + theirs, bytes, seed));
      pe.barrier();
    }
  }
  EXPECT(pe.transport->endpoints() == 1);
  EXPECT(pe.transport->strangers() == 0);
}

START_TEST(put_and_get_move_all_sizes) {
  ck_assert_int_eq(run_pes(over(_i), move_all_sizes), 0);
}
END_TEST

/// Everybody to everybody and itself, sources in use until quiet.
void exchange_without_waiting(Pe& pe) {
  constexpr std::size_t kBytes = 70001;
  std::vector<std::vector<std::byte>> mine, back;
  for (int peer = 0; peer < pe.size; ++peer) {
    mine.emplace_back(kBytes);
    back.emplace_back(kBytes);
    const auto seed = static_cast<unsigned>(pe.rank * 16 + peer);
    fill(mine.back().data(), kBytes, seed);
    const auto place = static_cast<std::uint64_t>(pe.rank) * kBytes;
    const std::byte* from = mine.back().data();
    for (std::size_t i = 0; i < 100; ++i)
      EXPECT_OK(pe.transport->put_nbi(pe.at(peer, place + i), from + i, 1));
    EXPECT_OK(pe.transport->put_nbi(pe.at(peer, place + 100), from + 100, kBytes - 100));
  }
  EXPECT_OK(pe.transport->quiet());
  pe.barrier();
  for (int peer = 0; peer < pe.size; ++peer) {
    const auto theirs = static_cast<std::size_t>(peer) * kBytes;
    EXPECT(holds(pe.memory + theirs, kBytes, static_cast<unsigned>(peer * 16 + pe.rank)));
    const auto place = static_cast<std::uint64_t>(pe.rank) * kBytes;
    std::byte* to = back[static_cast<std::size_t>(peer)].data();
    EXPECT_OK(pe.transport->get_nbi(to, pe.at(peer, place), 1));
    EXPECT_OK(pe.transport->get_nbi(to + 1, pe.at(peer, place + 1), kBytes - 1));
  }
  EXPECT_OK(pe.transport->quiet());
  for (int peer = 0; peer < pe.size; ++peer)
    EXPECT(back[static_cast<std::size_t>(peer)] == mine[static_cast<std::size_t>(peer)]);
  EXPECT(pe.transport->endpoints() == pe.size - 1);
}

START_TEST(quiet_completes_what_does_not_wait) {
  ck_assert_int_eq(run_pes(over(_i, 3), exchange_without_waiting), 0);
}
END_TEST

/// While PE 1 stands still nothing gets to its memory, so PE 0's quiet must not return.
void quiet_while_the_peer_stands_still(Pe& pe) {
  constexpr std::size_t kBytes = 100'000;
  const RemoteAddress word = pe.at(1, 0);
  const RemoteAddress place = pe.at(1, 64);
  std::vector<std::byte> mine(kBytes, std::byte{7});
  const std::function<Status()> posts[] = {
      [&] { return pe.transport->put(place, mine.data(), 8); },
      [&] { return pe.transport->put_nbi(place, mine.data(), kBytes); },
      [&] { return pe.transport->amo(AmoOp::kAdd, 8, word, 1, 0, nullptr); },
      [&] { return pe.transport->put_signal_nbi(place, mine.data(), 8, word, 1, SignalOp::kAdd); },
      [&] {
        return pe.transport->put_signal_nbi(place, mine.data(), kBytes, word, 1, SignalOp::kAdd);
      }};
  std::atomic<std::uint64_t>& silent = pe.world->notes[0];
  std::atomic<std::uint64_t>& returned = pe.world->notes[1];
  std::uint64_t round = 0;
  for (const auto& post : posts) {
    ++round;
    if (pe.rank == 0) {
      pe.await([&] { return silent.load() == round; });
      EXPECT_OK(post());
      EXPECT_OK(pe.transport->quiet());
      returned.store(round);
      continue;
    }
    silent.store(round);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT(returned.load() != round);
    pe.await([&] { return returned.load() == round; });
  }
  if (pe.rank == 0) return;
  EXPECT(pe.word(0).load() == 3);
  EXPECT(std::equal(mine.begin(), mine.end(), pe.memory + 64));
}

START_TEST(quiet_waits_for_the_peer) {
  ck_assert_int_eq(run_pes(over(_i), quiet_while_the_peer_stands_still), 0);
}
END_TEST

/// Every update once, with its result, against words that only this test touches.
template <class Word>
void update_all(Pe& pe, int peer, std::uint64_t offset) {
  constexpr unsigned kWidth = sizeof(Word);
  const RemoteAddress word = pe.at(peer, offset);
  constexpr Word kUntouched = static_cast<Word>(0x5a5a5a5a5a5a5a5a);
  Word old[2] = {};
  const auto update = [&](AmoOp op, std::uint64_t operand, std::uint64_t compare = 0) {
    old[0] = 0;
    old[1] = kUntouched;  // a result is `width` bytes, not more
    EXPECT_OK(pe.transport->amo(op, kWidth, word, operand, compare, old));
    EXPECT(old[1] == kUntouched);
    return old[0];
  };
  const Word big = static_cast<Word>(0xfedcba9876543210);
  EXPECT(update(AmoOp::kSet, big) == 0);
  EXPECT(update(AmoOp::kFetch, 7) == big);
  EXPECT(update(AmoOp::kSwap, 12) == big);
  EXPECT(update(AmoOp::kCompareSwap, 1, 13) == 12);
  EXPECT(update(AmoOp::kCompareSwap, 14, 12) == 12);
  EXPECT(update(AmoOp::kAdd, static_cast<std::uint64_t>(-4)) == 14);
  EXPECT(update(AmoOp::kAnd, 6) == 10);
  EXPECT(update(AmoOp::kOr, 9) == 2);
  EXPECT(update(AmoOp::kXor, 3) == 11);
  EXPECT(update(AmoOp::kFetch, 0) == 8);
  // Without a result they are complete at quiet.
  EXPECT_OK(pe.transport->amo(AmoOp::kSet, kWidth, word, 100, 0, nullptr));
  EXPECT_OK(pe.transport->amo(AmoOp::kAdd, kWidth, word, 11, 0, nullptr));
  EXPECT_OK(pe.transport->amo(AmoOp::kXor, kWidth, word, 1, 0, nullptr));
  EXPECT_OK(pe.transport->quiet());
  EXPECT(update(AmoOp::kFetch, 0) == 110);
  // With a late result: here after quiet.
  EXPECT_OK(pe.transport->amo_nbi(AmoOp::kAdd, kWidth, word, 5, 0, &old[0]));
  EXPECT_OK(pe.transport->amo_nbi(AmoOp::kSwap, kWidth, word, 6, 0, &old[1]));
  EXPECT_OK(pe.transport->quiet());
  EXPECT(old[0] == 110 && old[1] == 115);
}

void update_both_widths(Pe& pe) {
  const auto offset = static_cast<std::uint64_t>(pe.rank) * 256;
  for (int peer = 0; peer < pe.size; ++peer) {
    update_all<std::uint64_t>(pe, peer, offset + 64);
    update_all<std::uint32_t>(pe, peer, offset + 128);
  }
  pe.barrier();
  for (std::size_t word = 0; word < 64; ++word)  // the words that were updated, and no other bytes
    EXPECT(pe.words()[word] == (word % 32 == 8 || word % 32 == 16 ? 6u : 0u));
}

START_TEST(updates_do_what_they_say_in_both_widths) {
  ck_assert_int_eq(run_pes(over(_i), update_both_widths), 0);
}
END_TEST

/// Three PEs add to words of PE 0 while PE 0 adds to them by itself.
void sum_concurrently(Pe& pe) {
  constexpr int kRounds = 2000;
  std::uint64_t old = 0;
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_OK(pe.transport->amo(AmoOp::kAdd, 8, pe.at(0, 0), 3, 0, nullptr));
    EXPECT_OK(pe.transport->amo(AmoOp::kAdd, 4, pe.at(0, 8), 1, 0, nullptr));
    if (i % 8 == 0) EXPECT_OK(pe.transport->amo(AmoOp::kAdd, 8, pe.at(0, 16), 1, 0, &old));
    if (pe.rank == 0) pe.word(0).fetch_add(3);
  }
  EXPECT_OK(pe.transport->quiet());
  pe.barrier();
  if (pe.rank != 0) return;
  EXPECT(pe.word(0).load() == 5u * 3 * kRounds);
  EXPECT(pe.word(1).load() == 4u * kRounds);
  EXPECT(pe.word(2).load() == 4u * kRounds / 8);
}

START_TEST(concurrent_sums_are_exact) {
  ck_assert_int_eq(run_pes(over(_i, 4), sum_concurrently), 0);
}
END_TEST

/// Threads of one PE use the transport at once, the helper serves.
void share_the_transport(Pe& pe) {
  constexpr int kThreads = 3;
  constexpr std::uint64_t kRounds = 300;
  const auto work = [&pe](std::uint64_t mine) {
    const int peer = pe.rank ^ 1;
    const RemoteAddress word = pe.at(peer, mine * 8);
    std::uint64_t back = 0;
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      EXPECT_OK(pe.transport->put(word, &i, 8));
      if (i % 16 == 0) EXPECT_OK(pe.transport->fence());
      EXPECT_OK(pe.transport->amo(AmoOp::kAdd, 8, pe.at(peer, 1024), 1, 0, nullptr));
      EXPECT_OK(pe.transport->quiet());
      EXPECT_OK(pe.transport->get(&back, word, 8));
      EXPECT(back == i);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  }
  pe.barrier();
  EXPECT(pe.word(128).load() == kThreads * kRounds);
}

START_TEST(threads_share_the_transport) {
  Options options = over(_i);
  options.helpers = true;
  ck_assert_int_eq(run_pes(options, share_the_transport), 0);
}
END_TEST

/// The payload is there when its signal is; the second segment holds the signal.
void signal_after_payload(Pe& pe) {
  const int peer = pe.rank ^ 1;
  std::atomic_ref<std::uint64_t> signal(*reinterpret_cast<std::uint64_t*>(pe.second));
  std::vector<std::byte> mine(1 << 20);
  unsigned round = 0;
  for (const int size : {0, 1, 8, 5000, 8143, 8144, 8192, 100003, 1 << 20}) {
    const auto bytes = static_cast<std::size_t>(size);
    for (const SignalOp op : {SignalOp::kSet, SignalOp::kAdd, SignalOp::kAdd}) {
      ++round;
      fill(mine.data(), bytes, round);
      const std::uint64_t value = op == SignalOp::kSet ? round : 1;
      if (round % 2 == 0) {
        EXPECT_OK(pe.transport->put_signal(pe.at(peer, 3), mine.data(), bytes, pe.at(peer, 0, 1),
                                           value, op));
        fill(mine.data(), bytes, round + 1);  // the source may be reused
      } else {
        EXPECT_OK(pe.transport->put_signal_nbi(pe.at(peer, 3), mine.data(), bytes,
                                               pe.at(peer, 0, 1), value, op));
      }
      // Acquire: the payload was stored before the signal.
      pe.await([&] { return signal.load(std::memory_order_acquire) == round; });
      EXPECT(holds(pe.memory + 3, bytes, round));
      EXPECT_OK(pe.transport->quiet());
      pe.barrier();
    }
  }
  const Status refused = pe.transport->put_signal(pe.at(peer, kSegmentBytes - 4), mine.data(), 8,
                                                  pe.at(peer, 0, 1), 1, SignalOp::kAdd);
  EXPECT(refused.ok());
  EXPECT(contains(pe.transport->quiet(), "put of 8 bytes at offset"));
  pe.barrier();
  EXPECT(signal.load() == round);
}

START_TEST(put_signal_orders_payload) {
  ck_assert_int_eq(run_pes(over(_i), signal_after_payload), 0);
}
END_TEST

/// A page that nobody may write to yet. Whoever stores a payload there opens it, and notes what the
/// signal was before.
struct ClosedPage {
  void* page;
  std::uint64_t* signal;
  std::uint64_t seen;
  std::uint64_t opened;
};
ClosedPage closed{};

std::size_t page_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void open_page(int) {
  closed.seen = std::atomic_ref<std::uint64_t>(*closed.signal).load();
  ++closed.opened;
  if (::mprotect(closed.page, page_bytes(), PROT_READ | PROT_WRITE) != 0) std::_Exit(1);
}

void close_page_of(Pe& pe, std::uint64_t offset) {
  closed.page = pe.memory + offset / page_bytes() * page_bytes();
  closed.signal = pe.words();
  struct sigaction action {};
  action.sa_handler = open_page;
  EXPECT(::sigaction(SIGSEGV, &action, nullptr) == 0);
  EXPECT(::mprotect(closed.page, page_bytes(), PROT_READ) == 0);
}

void store_before_the_signal(Pe& pe) {
  constexpr std::uint64_t kPlace = 1 << 20;
  std::vector<std::byte> mine(100'000, std::byte{7});
  std::uint64_t round = 0;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{8000}, mine.size()}) {
    ++round;
    if (pe.rank == 0) {
      pe.await([&] { return pe.world->notes[0].load() == round; });
      EXPECT_OK(pe.transport->put_signal(pe.at(1, kPlace), mine.data(), bytes, pe.at(1, 0), 1,
                                         SignalOp::kAdd));
      EXPECT_OK(pe.transport->quiet());
      continue;
    }
    close_page_of(pe, kPlace + bytes - 1);
    pe.world->notes[0].store(round);
    pe.await([&] { return pe.word(0).load() == round; });
    EXPECT(closed.opened == round);
    EXPECT(closed.seen == round - 1);
  }
}

START_TEST(put_signal_stores_before_it_signals) {
  ck_assert_int_eq(run_pes(over(_i), store_before_the_signal), 0);
}
END_TEST

/// PE 0 floods PE 1, which it has never talked to, and PE 1 leaves everything to its helper thread.
void flood_at_first_contact(Pe& pe) {
  constexpr std::uint64_t kRounds = 300;
  if (pe.rank == 0) {
    for (std::uint64_t i = 1; i <= kRounds; ++i) EXPECT_OK(pe.transport->put(pe.at(1, 0), &i, 8));
    EXPECT_OK(pe.transport->quiet());
    return;
  }
  pe.watch([&] { return pe.word(0).load(std::memory_order_acquire) == kRounds; });
}

START_TEST(first_messages_wake_a_silent_pe) {
  Options options = over(_i);
  options.helpers = true;
  for (int world = 0; world < 15; ++world)
    ck_assert_int_eq(run_pes(options, flood_at_first_contact), 0);
}
END_TEST

/// PE 0 streams, PE 1 watches: a word that arrives later never shows up before one that was put
/// earlier, and no word is ever half new.
void fence_in_a_stream(Pe& pe) {
  constexpr std::uint64_t kRounds = 100'000;
  const auto both = [](std::uint64_t i) { return i << 32 | i; };
  if (pe.rank == 0) {
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      const std::uint64_t value = both(i);
      EXPECT_OK(pe.transport->put_nbi(pe.at(1, 0), &value, 8));
      EXPECT_OK(pe.transport->fence());
      if (i % 3 == 0) {
        EXPECT_OK(pe.transport->amo(AmoOp::kSet, 8, pe.at(1, 512), value, 0, nullptr));
      } else {
        EXPECT_OK(pe.transport->put(pe.at(1, 512), &value, 8));
      }
    }
    EXPECT_OK(pe.transport->quiet());
    return;
  }
  std::uint64_t later = 0;
  pe.watch([&] {
    later = pe.word(64).load(std::memory_order_acquire);
    const std::uint64_t earlier = pe.word(0).load(std::memory_order_acquire);
    EXPECT((later & 0xffffffff) == later >> 32);
    EXPECT((earlier & 0xffffffff) == earlier >> 32);
    EXPECT(earlier >= later);
    return later == both(kRounds);
  });
}

START_TEST(fence_orders_words) {
  Options options = over(_i);
  options.helpers = true;
  ck_assert_int_eq(run_pes(options, fence_in_a_stream), 0);
}
END_TEST

/// Long puts before and after short ones, which travel by other means on a native path.
void fence_between_kinds(Pe& pe) {
  constexpr std::uint64_t kRounds = 150;
  constexpr std::size_t kWords = 4096;
  if (pe.rank == 0) {
    std::vector<std::uint64_t> block(kWords), none(kWords);
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      EXPECT_OK(pe.transport->put(pe.at(1, 8), &i, 8));
      EXPECT_OK(pe.transport->fence());
      std::fill(block.begin(), block.end(), i);
      EXPECT_OK(pe.transport->put(pe.at(1, 4096), block.data(), kWords * 8));
      EXPECT_OK(pe.transport->fence());
      if (i % 2 == 0) {
        EXPECT_OK(pe.transport->put(pe.at(1, 16), &i, 8));
      } else {
        EXPECT_OK(pe.transport->put_signal(pe.at(1, 1 << 20), none.data(), kWords * 8, pe.at(1, 16),
                                           i, SignalOp::kSet));
      }
      EXPECT_OK(pe.transport->fence());
      EXPECT_OK(pe.transport->amo(AmoOp::kAdd, 8, pe.at(1, 24), 1, 0, nullptr));
    }
    EXPECT_OK(pe.transport->quiet());
    return;
  }
  const auto read = [&](std::size_t word) { return pe.word(word).load(std::memory_order_acquire); };
  pe.watch([&] {
    // Each is read after what was put behind it.
    const std::uint64_t last = read(3);
    const std::uint64_t behind_block = read(2);
    const std::uint64_t block_end = read(512 + kWords - 1);
    const std::uint64_t block_begin = read(512);
    const std::uint64_t first = read(1);
    EXPECT(behind_block >= last);
    EXPECT(block_end >= behind_block && block_begin >= behind_block);
    EXPECT(first >= block_end && first >= block_begin);
    return last == kRounds;
  });
}

START_TEST(fence_orders_kinds) {
  Options options = over(_i);
  options.helpers = true;
  ck_assert_int_eq(run_pes(options, fence_between_kinds), 0);
}
END_TEST

/// PE 1 computes: only its sleeping helper thread is there, and in some rounds PE 1 makes progress
/// itself just before it goes silent.
void serve_while_computing(Pe& pe) {
  constexpr std::uint64_t kRounds = 200;
  std::vector<std::byte> mine(1 << 18), back(1 << 18);
  if (pe.rank == 1) {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      const auto turn = [&] { return pe.world->notes[0].load() >= round; };
      pe.await(turn, true);
      for (std::uint64_t i = 0; i < round % 5; ++i) pe.transport->progress();
      pe.world->notes[1].store(round);
    }
    pe.barrier(true);
    return;
  }
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    pe.world->notes[0].store(round);
    if (round % 2 == 0) pe.await([&] { return pe.world->notes[1].load() >= round; }, true);
    if (round % 32 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::uint64_t old = 0;
    EXPECT_OK(pe.transport->amo(AmoOp::kAdd, 8, pe.at(1, 0), 1, 0, &old));
    EXPECT(old == round - 1);
    EXPECT_OK(pe.transport->put(pe.at(1, 8), &round, 8));
    EXPECT_OK(pe.transport->quiet());
    EXPECT_OK(pe.transport->get(&old, pe.at(1, 8), 8));
    EXPECT(old == round);
    if (round % 50 != 0) continue;
    fill(mine.data(), mine.size(), static_cast<unsigned>(round));
    EXPECT_OK(pe.transport->put_signal(pe.at(1, 64), mine.data(), mine.size(), pe.at(1, 16), 1,
                                       SignalOp::kAdd));
    EXPECT_OK(pe.transport->quiet());
    EXPECT_OK(pe.transport->get(back.data(), pe.at(1, 64), back.size()));
    EXPECT(mine == back);
  }
  pe.barrier(true);
}

START_TEST(helper_serves_a_silent_pe) {
  Options options = over(_i);
  options.helpers = true;
  ck_assert_int_eq(run_pes(options, serve_while_computing), 0);
}
END_TEST

/// The helper also moves what its own PE leaves behind: PE 0 posts more than the network takes,
/// then computes.
void leave_it_to_the_helper(Pe& pe) {
  constexpr std::size_t kBytes = 1 << 20;
  std::vector<std::byte> mine(kBytes);
  fill(mine.data(), kBytes, 9);
  // First contact is made, and the helper of PE 0 sleeps without end.
  std::uint64_t old = 0;
  if (pe.rank == 0) EXPECT_OK(pe.transport->amo(AmoOp::kFetch, 8, pe.at(1, 0), 0, 0, &old));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  if (pe.rank == 0)
    EXPECT_OK(pe.transport->put_signal_nbi(pe.at(1, 64), mine.data(), kBytes, pe.at(1, 0), 1,
                                           SignalOp::kSet));
  const auto arrived = [&] { return pe.word(0).load(std::memory_order_acquire) == 1; };
  if (pe.rank == 1) {
    pe.await(arrived, true);
    EXPECT(holds(pe.memory + 64, kBytes, 9));
  }
  pe.barrier(true);
  EXPECT_OK(pe.transport->quiet());
}

START_TEST(helper_finishes_what_its_pe_left) {
  Options options = over(_i);
  options.helpers = true;
  ck_assert_int_eq(run_pes(options, leave_it_to_the_helper), 0);
}
END_TEST

std::int64_t cpu_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& t) { return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

/// How often threads of this process have gone to sleep.
long sleeps() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

/// CPU time, not elapsed time: a helper that polls would use all that it can get. One that never
/// sleeps for long would use little, but wake a thousand times.
void stay_idle(Pe& pe) {
  std::uint64_t old = 0;
  EXPECT_OK(pe.transport->amo(AmoOp::kAdd, 8, pe.at(pe.rank ^ 1, 0), 1, 0, &old));
  pe.barrier(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::int64_t before = cpu_us();
  const long slept_before = sleeps();
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  EXPECT(cpu_us() - before < 10'000);
  EXPECT(sleeps() - slept_before < 100);
  // And it still wakes.
  EXPECT_OK(pe.transport->amo(AmoOp::kAdd, 8, pe.at(pe.rank ^ 1, 0), 1, 0, &old));
  EXPECT(old == 1);
  pe.barrier(true);
}

START_TEST(idle_helper_uses_no_cpu) {
  Options options = over(_i);
  options.helpers = true;
  ck_assert_int_eq(run_pes(options, stay_idle), 0);
}
END_TEST

/// Requests that leave the peer's memory come back as a sentence, from the peer or from what it
/// published; nothing else is touched and everything goes on.
void refuse_bad_places(Pe& pe) {
  for (const int peer : {pe.rank ^ 1, pe.rank}) {
    std::vector<std::byte> mine(1 << 16);
    std::uint64_t old = 77;
    const auto put = [&](std::uint64_t offset, std::size_t bytes, std::uint16_t segment = 0) {
      Status status = pe.transport->put(pe.at(peer, offset, segment), mine.data(), bytes);
      return status.ok() ? pe.transport->quiet() : std::move(status);
    };
    const auto add = [&](unsigned width, std::uint64_t offset, void* fetched,
                         std::uint16_t segment = 0) {
      Status status =
          pe.transport->amo(AmoOp::kAdd, width, pe.at(peer, offset, segment), 1, 0, fetched);
      return status.ok() ? pe.transport->quiet() : std::move(status);
    };
    const auto signal = [&](std::uint64_t offset, std::size_t bytes, std::uint64_t word,
                            std::uint16_t word_segment = 0) {
      Status status = pe.transport->put_signal(pe.at(peer, offset), mine.data(), bytes,
                                               pe.at(peer, word, word_segment), 1, SignalOp::kAdd);
      return status.ok() ? pe.transport->quiet() : std::move(status);
    };
    const std::string who = fmt::format("PE {} refused a ", peer);
    EXPECT(contains(put(kSegmentBytes - 7, 8), who + "put of 8 bytes at offset 4194297 of its "
                                                     "symmetric segment 0: the segment has 4194304 "
                                                     "bytes"));
    EXPECT(contains(put(kSegmentBytes - 100, 1 << 16), who + "put of 65536 bytes"));
    EXPECT(contains(put(kSegmentBytes - 65535, 1 << 16),
                    who + "put of 65536 bytes at offset 4128769 of its symmetric segment 0: the "
                          "segment has 4194304 bytes"));
    EXPECT(contains(signal(kSegmentBytes - 7, 8, 0), who + "put of 8 bytes at offset 4194297"));
    EXPECT(contains(signal(kSegmentBytes - 65535, 1 << 16, 0), who + "put of 65536 bytes"));
    EXPECT(contains(signal(64, 8, 4), "aligned to its size"));
    EXPECT(contains(signal(64, 8, kSegmentBytes), "the segment has 4194304 bytes"));
    EXPECT(contains(signal(64, 8, 0, 2), "symmetric segment 2: it has no such segment"));
    EXPECT(contains(put(~std::uint64_t{0} - 3, 8), who + "put of 8 bytes"));
    EXPECT(contains(put(0, 8, 2), "symmetric segment 2: it has no such segment"));
    EXPECT(contains(put(kSecondBytes, 1, 1), "symmetric segment 1: the segment has 4096 bytes"));
    EXPECT(contains(pe.transport->get(&old, pe.at(peer, kSegmentBytes - 4), 8),
                    who + "get of 8 bytes"));
    EXPECT(contains(pe.transport->get(&old, pe.at(peer, kSegmentBytes - 7), 8),
                    who + "get of 8 bytes"));
    EXPECT(contains(pe.transport->get(mine.data(), pe.at(peer, kSegmentBytes - 65535), 1 << 16),
                    who + "get of 65536 bytes"));
    EXPECT(contains(add(8, 4, &old), who + "update of 8 bytes at offset 4"));
    EXPECT(contains(add(4, 2, nullptr), "aligned to its size"));
    EXPECT(contains(add(4, kSegmentBytes, &old), "the segment has 4194304 bytes"));
    EXPECT(contains(add(2, 0, &old), "a word has 4 or 8 bytes"));
    EXPECT(old == 77);
    EXPECT_OK(pe.transport->quiet());  // an error is told once
    EXPECT_OK(pe.transport->amo(AmoOp::kAdd, 8, pe.at(peer, 0), 1, 0, &old));
  }
  EXPECT(contains(pe.transport->put(pe.at(2, 0), &pe, 8), "there is no PE 2, allowed are 0 to 1"));
  EXPECT(contains(pe.transport->put(pe.at(-1, 0), &pe, 8), "there is no PE -1"));
  pe.barrier();
  EXPECT(pe.word(0).load() == 2);
  for (std::size_t i = 1; i < kSegmentBytes / 8; ++i) EXPECT(pe.words()[i] == 0);
}

START_TEST(bad_places_are_refused) {
  ck_assert_int_eq(run_pes(over(_i), refuse_bad_places), 0);
}
END_TEST

START_TEST(places_end_with_their_segment) {
  // Words at the ends would leave the segments by four bytes, and by one.
  alignas(8) std::byte bytes[32] = {};
  const LocalSegment segments[] = {{bytes, 20}, {bytes, 15}};
  const ucx::ServedMemory memory(segments);
  ck_assert_ptr_eq(memory.locate(0, 0, 20), bytes);
  ck_assert_ptr_eq(memory.locate(0, 19, 1), bytes + 19);
  ck_assert_ptr_eq(memory.locate(0, 20, 0), bytes + 20);
  ck_assert_ptr_null(memory.locate(0, 0, 21));
  ck_assert_ptr_null(memory.locate(0, 19, 2));
  ck_assert_ptr_null(memory.locate(0, 20, 1));
  ck_assert_ptr_null(memory.locate(0, 21, 0));
  ck_assert_ptr_null(memory.locate(0, ~std::uint64_t{0}, 2));
  ck_assert_ptr_null(memory.locate(0, 2, ~std::uint64_t{0}));
  ck_assert_ptr_null(memory.locate(2, 0, 0));
  ck_assert_ptr_eq(memory.locate_word(0, 8, 8), bytes + 8);
  ck_assert_ptr_eq(memory.locate_word(0, 16, 4), bytes + 16);
  ck_assert_ptr_null(memory.locate_word(0, 16, 8));
  ck_assert_ptr_null(memory.locate_word(0, 20, 4));
  ck_assert_ptr_null(memory.locate_word(1, 8, 8));
  ck_assert_ptr_eq(memory.locate_word(1, 8, 4), bytes + 8);
  ck_assert_ptr_null(memory.locate_word(0, 4, 8));
  ck_assert_ptr_null(memory.locate_word(0, 2, 4));
  for (const unsigned width : {0u, 1u, 2u, 3u, 16u})
    ck_assert_ptr_null(memory.locate_word(0, 0, width));
  ck_assert_uint_eq(memory.size_of(1), 15);
  ck_assert_uint_eq(memory.size_of(2), 0);
}
END_TEST

/// Says what is none of a PE's messages, and returns how many that were.
unsigned talk_nonsense(const Pe& pe, Stranger& stranger) {
  using ucx::MessageKind;
  unsigned said = 0;
  ucx::MessageHeader header{};
  const auto say = [&](std::size_t payload = 0) {
    stranger.say(pe, header, payload);
    ++said;
  };
  for (const std::size_t cut : {std::size_t{0}, std::size_t{7}, sizeof header - 1}) {
    stranger.say(pe, &header, cut);
    stranger.say(pe, nullptr, 0, cut);  // where a header stands that has no payload
    said += 2;
  }
  stranger.say(pe, nullptr, 0, sizeof header + 1);
  ++said;
  for (const int kind : {0, 12, 255}) {
    header.kind = static_cast<MessageKind>(kind);
    say();
  }
  // Listeners: none of the first number, nobody, and a refusal of what is not refused so.
  header.kind = MessageKind::kNote;
  say();
  header.kind = MessageKind::kRefused;
  for (const std::uint64_t ticket : {0u, 1u, 2u}) {
    header.ticket = ticket;
    say();
  }
  header.ticket = 0;
  header.kind = MessageKind::kPut;
  for (const int source : {2, -1}) {
    header.source = source;
    say();
  }
  header.source = 0;
  for (const MessageKind kind : {MessageKind::kPut, MessageKind::kPutSignal}) {
    header.kind = kind;
    header.bytes = 8;
    say(7);
    say(9);
    header.bytes = 4096;
    stranger.say(pe, &header, sizeof header, 4096, UCP_AM_SEND_FLAG_RNDV);
    ++said;
  }
  // Nowhere to answer to, or nobody asked.
  for (const MessageKind kind : {MessageKind::kFetch, MessageKind::kRead, MessageKind::kAskDone,
                                 MessageKind::kValue, MessageKind::kData, MessageKind::kDone}) {
    header.kind = kind;
    header.ticket = 0x1234'5678'9abc'def0;
    say();
  }
  header.width = 8;
  header.op = 8;  // no update
  header.bytes = 8;
  header.kind = MessageKind::kUpdate;
  say();
  header.kind = MessageKind::kPutSignal;
  header.offset = 64;
  say(8);
  header.kind = MessageKind::kFetch;
  stranger.ask_in_vain(pe, header);
  return said + 1;
}

void hear_strangers(Pe& pe) {
  pe.barrier();  // PE 1 has published its address
  if (pe.rank == 0) {
    Stranger stranger(pe, 1);
    pe.world->notes[0].store(talk_nonsense(pe, stranger));
    std::uint64_t old = 0;
    EXPECT_OK(pe.transport->amo(AmoOp::kAdd, 8, pe.at(1, 0), 1, 0, &old));
    EXPECT(old == 0);
    pe.barrier();
    EXPECT(stranger.answers() == 0);
    return;
  }
  pe.await([&] {
    const std::uint64_t said = pe.world->notes[0].load();
    return said != 0 && pe.transport->strangers() == said && pe.word(0).load() == 1;
  });
  for (std::size_t i = 1; i < kSegmentBytes / 8; ++i) EXPECT(pe.words()[i] == 0);
  pe.barrier();
}

START_TEST(strangers_are_refused_and_counted) {
  ck_assert_int_eq(run_pes(over(_i), hear_strangers), 0);
}
END_TEST

/// Requests in the right shape for places that are not there: whoever asks is told, and what
/// nobody asks about is told with the next question.
void refuse_by_message(Pe& pe) {
  using ucx::MessageKind;
  pe.barrier();
  if (pe.rank == 0) {
    Stranger stranger(pe, 1);
    ucx::MessageHeader header{};
    header.width = 8;
    header.ticket = 99;
    const auto refuses = [&](MessageKind kind, std::uint16_t segment, std::uint64_t offset,
                             std::uint32_t bytes, std::uint64_t size) {
      header.kind = kind;
      header.segment = segment;
      header.offset = offset;
      header.bytes = bytes;
      const ucx::MessageHeader answer = stranger.ask(pe, header);
      EXPECT(answer.kind == MessageKind::kValue && answer.refused == 1);
      EXPECT(answer.op == static_cast<std::uint8_t>(kind) && answer.ticket == 99);
      EXPECT(answer.operand == size && answer.bytes == bytes && answer.offset == offset);
    };
    for (const MessageKind kind : {MessageKind::kRead, MessageKind::kFetch}) {
      refuses(kind, 0, kSegmentBytes, 8, kSegmentBytes);
      refuses(kind, 1, kSecondBytes, 8, kSecondBytes);
      refuses(kind, 2, 0, 8, 0);
      refuses(kind, 65535, 0, 8, 0);
    }
    refuses(MessageKind::kRead, 0, kSegmentBytes - 7, 8, kSegmentBytes);
    refuses(MessageKind::kRead, 0, 1, kSegmentBytes, kSegmentBytes);
    refuses(MessageKind::kRead, 0, ~std::uint64_t{0}, 2, kSegmentBytes);
    refuses(MessageKind::kFetch, 0, 4, 8, kSegmentBytes);
    header.kind = MessageKind::kUpdate;
    header.segment = 2;
    stranger.say(pe, header);
    header.kind = MessageKind::kAskDone;
    const ucx::MessageHeader told = stranger.ask(pe, header);
    EXPECT(told.kind == MessageKind::kDone && told.refused == 1 && told.segment == 2);
    const ucx::MessageHeader again = stranger.ask(pe, header);
    EXPECT(again.kind == MessageKind::kDone && again.refused == 0);
    pe.barrier();
    return;
  }
  pe.barrier();
  EXPECT(pe.transport->strangers() == 0);
  for (std::size_t i = 0; i < kSegmentBytes / 8; ++i) EXPECT(pe.words()[i] == 0);
}

START_TEST(bad_places_are_refused_by_message) {
  ck_assert_int_eq(run_pes(over(_i), refuse_by_message), 0);
}
END_TEST

/// PE 1 answers what it was not asked, before it answers what it was.
void tell_lies(const Pe& pe, Stranger& liar) {
  using ucx::MessageKind;
  ucx::MessageHeader header{};
  const auto say = [&](MessageKind kind, std::uint64_t ticket, std::uint64_t offset = 0,
                       std::size_t payload = 0, int source = 1) {
    header.kind = kind;
    header.source = source;
    header.ticket = ticket;
    header.offset = offset;
    header.bytes = static_cast<std::uint32_t>(payload);
    liar.say(pe, header, payload);
    pe.world->notes[1].fetch_add(1);
  };
  // Ticket 0 is a get of 9 bytes, ticket 1 a fetch.
  constexpr std::uint64_t kLaterUse = std::uint64_t{1} << 32;
  say(MessageKind::kValue, 0);           // a value has 8 bytes
  say(MessageKind::kValue, 2);           // nobody has this ticket,
  say(MessageKind::kValue, kLaterUse);   // and not yet this one
  say(MessageKind::kValue, 1, 0, 0, 0);  // not from whom was asked
  say(MessageKind::kData, 0, 0, 9, 0);
  say(MessageKind::kData, 1, 0, 8);   // no data were asked for
  say(MessageKind::kData, 0, 0, 10);  // a byte too long
  say(MessageKind::kData, 0, 1, 9);   // a byte too far
  say(MessageKind::kData, 0, 9, 1);
  say(MessageKind::kData, 0, 10, 1);
  say(MessageKind::kData, 0, ~std::uint64_t{0}, 2);
  say(MessageKind::kData, 0, 0, 0);     // nothing
  say(MessageKind::kDone, 1);           // nobody asked about anything
  say(MessageKind::kDone, 0, 0, 0, 0);  // nobody asked PE 0 at all
}

void hear_lies(Pe& pe) {
  std::array<std::byte, 16> result;
  result.fill(std::byte{1});
  std::uint64_t fetched = 5;
  if (pe.rank == 1) {
    fill(pe.memory + 64, 9, 3);
    pe.await([&] { return pe.world->notes[0].load() == 1; }, true);
    {
      Stranger liar(pe, 0);
      tell_lies(pe, liar);
    }
    pe.world->notes[0].store(2);
    pe.await([&] { return pe.world->notes[0].load() == 3; }, true);
    pe.barrier();
    return;
  }
  EXPECT_OK(pe.transport->get_nbi(result.data(), pe.at(1, 64), 9));
  EXPECT_OK(pe.transport->amo_nbi(AmoOp::kFetch, 8, pe.at(1, 0), 0, 0, &fetched));
  pe.world->notes[0].store(1);
  pe.await([&] {
    return pe.world->notes[0].load() == 2 && pe.transport->strangers() == pe.world->notes[1].load();
  });
  for (const std::byte byte : result) EXPECT(byte == std::byte{1});
  EXPECT(fetched == 5);
  pe.world->notes[0].store(3);
  EXPECT_OK(pe.transport->quiet());
  EXPECT(holds(result.data(), 9, 3) && result[9] == std::byte{1});
  EXPECT(fetched == 0);
  EXPECT(pe.transport->strangers() == pe.world->notes[1].load());
  pe.barrier();
}

START_TEST(answers_that_nobody_asked_for_are_refused) {
  ck_assert_int_eq(run_pes(over(_i), hear_lies), 0);
}
END_TEST

/// PE 1 is killed while PE 0 waits for it in each kind of call.
template <class Call>
void outlive_a_peer(Pe& pe, Call&& call) {
  std::uint64_t old = 0;
  std::vector<std::byte> mine(1 << 20);
  if (pe.rank == 0) EXPECT_OK(pe.transport->amo(AmoOp::kAdd, 8, pe.at(1, 0), 1, 0, &old));
  pe.barrier();
  if (pe.rank == 1) ::kill(::getpid(), SIGKILL);
  const Status status = call(*pe.transport, pe.at(1, 64), mine);
  EXPECT(contains(status, "PE 1 "));
  EXPECT(status.code() == Code::kRemote);
  EXPECT(contains(pe.transport->put(pe.at(1, 0), &old, 8), "PE 1 "));
  static_cast<void>(pe.transport->quiet());
  EXPECT_OK(pe.transport->quiet());
  EXPECT_OK(pe.transport->put(pe.at(0, 0), &old, 8));
}

Options killing(int path) {
  Options options = over(path);
  options.killed = 1;
  // Over tcp the broken connection tells, without anybody's report.
  options.reported = std::string_view(options.tls) != "tcp";
  return options;
}

START_TEST(killed_peer_ends_a_get) {
  const auto get = [](Transport& transport, const RemoteAddress& place,
                      std::vector<std::byte>& mine) {
    return transport.get(mine.data(), place, mine.size());
  };
  ck_assert_int_eq(run_pes(killing(_i), [&](Pe& pe) { outlive_a_peer(pe, get); }), 0);
}
END_TEST

START_TEST(killed_peer_ends_an_update) {
  const auto add = [](Transport& transport, const RemoteAddress& place,
                      std::vector<std::byte>& mine) {
    return transport.amo(AmoOp::kAdd, 8, place, 1, 0, mine.data());
  };
  ck_assert_int_eq(run_pes(killing(_i), [&](Pe& pe) { outlive_a_peer(pe, add); }), 0);
}
END_TEST

START_TEST(killed_peer_ends_quiet) {
  const auto put = [](Transport& transport, const RemoteAddress& place,
                      std::vector<std::byte>& mine) {
    Status status = transport.put_signal_nbi(place, mine.data(), mine.size(), {place.pe, 0, 0}, 1,
                                             SignalOp::kAdd);
    return status.ok() ? transport.quiet() : std::move(status);
  };
  ck_assert_int_eq(run_pes(killing(_i), [&](Pe& pe) { outlive_a_peer(pe, put); }), 0);
}
END_TEST

void wait_for_a_mute_peer(Pe& pe) {
  std::uint64_t old = 0;
  if (pe.rank == 0) {
    const Status status = pe.transport->get(&old, pe.at(1, 0), 8);
    EXPECT(contains(status, "PE 1 did not answer within 0.2 s of first contact"));
    EXPECT(contains(pe.transport->put(pe.at(1, 0), &old, 8), "PE 1 did not answer"));
    EXPECT(pe.transport->endpoints() == 0);
  }
  pe.barrier();
}

START_TEST(first_contact_is_bounded) {
  Options options = over(_i);
  options.mute = 1;
  options.connect_timeout = 0.2;
  ck_assert_int_eq(run_pes(options, wait_for_a_mute_peer), 0);
}
END_TEST

START_TEST(damaged_blob_is_refused) {
  const auto bytes = [](std::size_t count) { return std::vector<std::byte>(count, std::byte{7}); };
  ucx::Blob blob;
  blob.worker_address = bytes(100);
  blob.segments.push_back({0x1000, 0x2000, bytes(10)});
  blob.segments.push_back({0x5000, 0x100, {}});
  const std::vector<std::byte> whole = ucx::encode(blob);
  ucx::Blob read;
  ck_assert(ucx::decode(whole, read).ok());
  ck_assert(read.worker_address == blob.worker_address);
  ck_assert_uint_eq(read.segments.size(), 2);
  ck_assert_uint_eq(read.segments[1].base, 0x5000);
  ck_assert_uint_eq(read.segments[0].size, 0x2000);
  ck_assert(read.segments[0].key == blob.segments[0].key);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    ucx::Blob cut;
    ck_assert(!ucx::decode({whole.data(), length}, cut).ok());
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  ck_assert(!ucx::decode(longer, read).ok());
  std::vector<std::byte> other = whole;
  other[0] ^= std::byte{1};
  ck_assert(!ucx::decode(other, read).ok());
}
END_TEST

// ---- requests of proxies ----

using testing::Counted;
using testing::Offered;

#define CARRIER_TEST(name, body)                  \
  START_TEST(name) {                              \
    ck_assert_int_eq(run_pes(over(_i), body), 0); \
  }                                               \
  END_TEST

CARRIER_TEST(carried_puts_arrive_before_their_signals, testing::carry_puts<Pe>)
CARRIER_TEST(carried_gets_bring_all_sizes, testing::carry_gets<Pe>)
CARRIER_TEST(carried_updates_do_what_they_say, testing::carry_updates<Pe>)
CARRIER_TEST(many_carried_requests_are_open_at_once, testing::carry_many<Pe>)
CARRIER_TEST(refusals_reach_the_posters_listener, testing::hear_refusals<Pe>)
CARRIER_TEST(segment_numbers_rest_before_they_return, testing::renumber_segments<Pe>)
CARRIER_TEST(notes_reach_their_listener, testing::pass_notes<Pe>)

CARRIER_TEST(pieces_of_all_sizes, testing::carry_pieces<Pe>)

/// PE 1 stands still: PE 0 posts until there is no room, and quiet is not about any of it. Then
/// everything arrives, in order.
void run_out_of_room(Pe& pe) {
  constexpr std::size_t kEach = 8000;
  Offered<Pe> offered(pe);
  std::atomic<std::uint64_t>& turn = pe.world->notes[0];
  std::vector<std::byte> mine(kEach, std::byte{7});
  if (pe.rank == 0) {
    offered.drain(1);  // connected
    turn.store(1);
    pe.await([&] { return turn.load() == 2; });
    std::deque<Counted> requests;
    std::uint64_t old = 5;
    offered.aim(requests.emplace_back(), CarriedRequest::Kind::kAmo, 1, testing::kWordsAt, &old, 0);
    offered.post(requests.back());
    bool posted = true;
    while (posted) {
      EXPECT(requests.size() < 20'000);
      Counted& put = requests.emplace_back();
      offered.aim(put, CarriedRequest::Kind::kPut, 1, 0, mine.data(), kEach);
      offered.raise(put, SignalOp::kAdd, 1, false);
      for (int tries = 0; tries < 100; ++tries) {
        posted = pe.transport->post(put);
        if (posted) break;
        pe.transport->progress();
      }
    }
    EXPECT(requests.size() > 50);
    EXPECT_OK(pe.transport->quiet());
    EXPECT(!requests.front().is_over() && !requests.back().is_over());
    turn.store(3);
    offered.finish(requests.back());
    pe.await([&] { return std::ranges::all_of(requests, &Counted::is_over); });
    for (Counted& request : requests) {
      EXPECT_OK(std::move(request.status));
      EXPECT(request.completions.load() == 1);
    }
    EXPECT(old == 0);
    pe.world->notes[1].store(requests.size() - 1);
    return;
  }
  pe.await([&] { return turn.load() == 1; });
  turn.store(2);
  pe.await([&] { return turn.load() == 3; }, true);
  pe.await([&] {
    const std::uint64_t sent = pe.world->notes[1].load();
    return sent != 0 && offered.word().load() == sent;
  });
}
CARRIER_TEST(no_room_is_said_and_ends, run_out_of_room)

/// A piece of memory goes away while the answers from it are still under way.
void remove_what_is_read(Pe& pe) {
  constexpr std::size_t kBytes = 4 << 20;
  Offered<Pe> offered(pe);
  std::byte* const pages = testing::map_pages(kBytes);
  fill(pages, kBytes, 3);
  SegmentNumber number = 0;
  EXPECT_OK(pe.transport->add_segment(pages, kBytes, number));
  const std::vector<std::uint64_t> numbers = pe.share(number);
  std::atomic<std::uint64_t>& turn = pe.world->notes[0];
  std::vector<std::byte> back(kBytes);
  if (pe.rank == 0) offered.drain(1);  // connected
  pe.barrier();
  if (pe.rank == 0) {
    Counted get;
    offered.aim(get, CarriedRequest::Kind::kGet, 1, 0, back.data(), kBytes);
    get.segment = static_cast<SegmentNumber>(numbers[1]);
    offered.post(get);
    turn.store(1);
    pe.await([&] { return turn.load() == 2; }, true);
    pe.await([&] { return get.is_over() || pe.transport->post(get); });
    pe.await([&] { return get.is_over(); });
    EXPECT(get.completions.load() == 1);
    EXPECT(holds(back.data(), 64 << 10, 3));  // what was answered before the end
    EXPECT(offered.refusals.load() == 0 || offered.first.size == 0);
  } else {
    pe.await([&] { return turn.load() == 1; }, true);
    for (int i = 0; i < 200; ++i) pe.transport->progress();
    pe.transport->remove_segment(number);
    EXPECT(::munmap(pages, kBytes) == 0);
    turn.store(2);
  }
  pe.barrier();
  if (pe.rank == 0) pe.transport->remove_segment(number);
}
CARRIER_TEST(a_segment_goes_while_answers_are_under_way, remove_what_is_read)

/// Requests to a peer that is killed end once each, with its name; quiet is not about them.
void lose_a_peer(Pe& pe) {
  SegmentNumber number = 0;
  EXPECT_OK(pe.transport->add_segment(pe.memory, testing::kCarrierBytes, number));
  const std::vector<std::uint64_t> numbers = pe.share(number);
  std::vector<std::byte> mine(1 << 20);
  std::uint64_t old = 0;
  const auto aim = [&](Counted& request, CarriedRequest::Kind kind) {
    request.kind = kind;
    request.rank = 1;
    request.segment = static_cast<SegmentNumber>(numbers[1]);
    request.local = mine.data();
    request.bytes = mine.size();
  };
  std::deque<Counted> requests;
  const auto begin = [&](CarriedRequest::Kind kind) {
    Counted& request = requests.emplace_back();
    aim(request, kind);
    if (kind == CarriedRequest::Kind::kAmo) request.local = &old;
    for (int tries = 0; tries < 100 && !pe.transport->post(request); ++tries)
      pe.transport->progress();
  };
  if (pe.rank == 0) {
    Counted hello;
    aim(hello, CarriedRequest::Kind::kDrain);
    pe.await([&] { return pe.transport->post(hello); });
    pe.await([&] { return hello.is_over(); });
  }
  pe.barrier();
  if (pe.rank == 1) {
    pe.await([&] { return pe.world->notes[0].load() == 1; }, true);
    ::kill(::getpid(), SIGKILL);
  }
  begin(CarriedRequest::Kind::kAmo);
  begin(CarriedRequest::Kind::kGet);
  begin(CarriedRequest::Kind::kDrain);
  for (int i = 0; i < 4; ++i) begin(CarriedRequest::Kind::kPut);
  EXPECT(!requests.front().is_over());
  pe.world->notes[0].store(1);
  for (Counted& request : requests) {
    pe.await([&] { return request.is_over() || pe.transport->post(request); });
    pe.await([&] { return request.is_over(); });
  }
  EXPECT(contains(requests.front().status, "PE 1 "));
  EXPECT(requests.front().status.code() == Code::kRemote);
  EXPECT(contains(requests.back().status, "PE 1 "));
  Counted late;
  aim(late, CarriedRequest::Kind::kGet);
  pe.await([&] { return pe.transport->post(late); });
  EXPECT(late.completions.load() == 1 && contains(late.status, "PE 1 "));
  const std::byte note[4] = {};
  EXPECT(pe.transport->post_note(1, 0, note));
  EXPECT_OK(pe.transport->quiet());
  for (int i = 0; i < 1000; ++i) pe.transport->progress();
  for (const Counted& request : requests) EXPECT(request.completions.load() == 1);
}

START_TEST(killed_peer_ends_carried_requests) {
  ck_assert_int_eq(run_pes(killing(_i), lose_a_peer), 0);
}
END_TEST

/// The transport goes while requests of a proxy are open.
void leave_with_open_requests(Pe& pe) {
  std::deque<Counted> requests;
  std::vector<std::byte> mine(1 << 20);
  {
    Offered<Pe> offered(pe);
    if (pe.rank == 0) offered.drain(1);
  }
  if (pe.rank == 0) {
    for (const auto kind :
         {CarriedRequest::Kind::kGet, CarriedRequest::Kind::kPut, CarriedRequest::Kind::kDrain}) {
      Counted& request = requests.emplace_back();
      request.kind = kind;
      request.rank = 1;
      request.local = mine.data();
      request.bytes = kind == CarriedRequest::Kind::kDrain ? 0 : 1000;
      pe.await([&] { return pe.transport->post(request); });
    }
    EXPECT(!requests.front().is_over() && !requests.back().is_over());
    pe.transport.reset();
    for (const Counted& request : requests) EXPECT(request.completions.load() == 1);
    EXPECT(contains(requests.front().status, "this PE has left"));
    EXPECT(contains(requests.back().status, "this PE has left"));
    pe.world->notes[0].store(1);
    std::_Exit(0);
  }
  pe.await([&] { return pe.world->notes[0].load() == 1; }, true);
  std::_Exit(0);
}
CARRIER_TEST(requests_end_with_their_transport, leave_with_open_requests)

/// UCX's crash handlers are gone; a sanitizer may have its own.
void keep_crash_signals(Pe& pe) {
  for (const int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
    struct sigaction action {};
    EXPECT(::sigaction(number, nullptr, &action) == 0);
    if (action.sa_handler == SIG_DFL) continue;
    Dl_info owner{};
    EXPECT(::dladdr(reinterpret_cast<void*>(action.sa_sigaction), &owner) != 0);
    EXPECT(std::string_view(owner.dli_fname).find("libucs") == std::string_view::npos);
  }
}

START_TEST(crash_signals_stay_the_programs) {
  ck_assert_int_eq(run_pes(over(0), keep_crash_signals), 0);
}
END_TEST

/// `newer`: UCX chooses its protocols in the way that later releases do by default.
Suite* make_suite(bool newer) {
  Suite* suite = suite_create(newer ? "ucx_transport, newer protocols" : "ucx_transport");
  TCase* cases = tcase_create("ucx_transport");
  tcase_set_timeout(cases, 60);
  tcase_add_loop_test(cases, put_and_get_move_all_sizes, 0, kPathCount);
  tcase_add_loop_test(cases, quiet_completes_what_does_not_wait, 0, kPathCount);
  tcase_add_loop_test(cases, quiet_waits_for_the_peer, 0, kPathCount);
  tcase_add_loop_test(cases, updates_do_what_they_say_in_both_widths, 0, kNetworkCount);
  tcase_add_loop_test(cases, concurrent_sums_are_exact, 0, kNetworkCount);
  tcase_add_loop_test(cases, threads_share_the_transport, 0, kNetworkCount);
  tcase_add_loop_test(cases, put_signal_orders_payload, 0, kPathCount);
  tcase_add_loop_test(cases, put_signal_stores_before_it_signals, 0, kPathCount);
  tcase_add_loop_test(cases, first_messages_wake_a_silent_pe, 0, kNetworkCount);
  tcase_add_loop_test(cases, fence_orders_words, 0, kNetworkCount);
  tcase_add_loop_test(cases, fence_orders_kinds, 0, kPathCount);
  tcase_add_loop_test(cases, helper_serves_a_silent_pe, 0, kPathCount);
  tcase_add_loop_test(cases, helper_finishes_what_its_pe_left, 0, kNetworkCount);
  tcase_add_loop_test(cases, idle_helper_uses_no_cpu, 0, kNetworkCount);
  tcase_add_loop_test(cases, bad_places_are_refused, 0, kPathCount);
  tcase_add_test(cases, places_end_with_their_segment);
  tcase_add_loop_test(cases, strangers_are_refused_and_counted, 0, kNetworkCount);
  tcase_add_loop_test(cases, bad_places_are_refused_by_message, 0, kNetworkCount);
  tcase_add_loop_test(cases, answers_that_nobody_asked_for_are_refused, 0, kNetworkCount);
  for (const TTest* test :
       {carried_puts_arrive_before_their_signals, carried_gets_bring_all_sizes,
        carried_updates_do_what_they_say, many_carried_requests_are_open_at_once,
        pieces_of_all_sizes, refusals_reach_the_posters_listener,
        segment_numbers_rest_before_they_return, notes_reach_their_listener,
        no_room_is_said_and_ends, a_segment_goes_while_answers_are_under_way,
        killed_peer_ends_carried_requests, requests_end_with_their_transport})
    tcase_add_loop_test(cases, test, 0, kPathCount);
  // The newer protocols of UCX 1.13 end the process when they have to give up a get of its own.
  tcase_add_loop_test(cases, killed_peer_ends_a_get, 0, newer ? kNetworkCount : kPathCount);
  tcase_add_loop_test(cases, killed_peer_ends_an_update, 0, kNetworkCount);
  tcase_add_loop_test(cases, killed_peer_ends_quiet, 0, kPathCount);
  tcase_add_loop_test(cases, first_contact_is_bounded, 0, 1);
  tcase_add_test(cases, damaged_blob_is_refused);
  tcase_add_test(cases, crash_signals_stay_the_programs);
  suite_add_tcase(suite, cases);
  return suite;
}

}  // namespace

int main() {
  return gimlet::tests::run_with_both_protocols(make_suite);
}
