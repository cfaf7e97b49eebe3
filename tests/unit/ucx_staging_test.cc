// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <vector>

#include "ucx_stranger.h"
#include "ucx_world.h"
// After the world, whose EXPECT it uses.
#include "carrier_cases.h"
// After the others: Check defines a macro named fail.
#include "suite.h"

namespace {

using namespace gimlet;
using namespace gimlet::pgas;
using testing::Counted;
using testing::Offered;
using testing::Options;
using testing::Pe;
using testing::run_pes;
using testing::Stranger;

constexpr const char* kNetworks[] = {"posix", "tcp"};
constexpr int kNetworkCount = 2;
constexpr auto kPut = CarriedRequest::Kind::kPut;
constexpr auto kGet = CarriedRequest::Kind::kGet;

/// All memory is such that nobody but its kind's copies may touch it.
Options staged(int network, std::size_t pieces, int pes = 2) {
  Options options;
  options.pes = pes;
  options.tls = kNetworks[network];
  options.staged_pieces = pieces;
  return options;
}

/// With one piece of bounce memory at each end, and with several.
#define STAGED_TEST(name, body)                                              \
  START_TEST(name) {                                                         \
    ck_assert_int_eq(run_pes(staged(_i / 2, _i % 2 == 0 ? 1 : 8), body), 0); \
  }                                                                          \
  END_TEST

STAGED_TEST(puts_arrive_before_their_signals, testing::carry_puts<Pe>)
STAGED_TEST(gets_bring_all_sizes, testing::carry_gets<Pe>)
STAGED_TEST(updates_do_what_they_say, testing::carry_updates<Pe>)
STAGED_TEST(many_requests_are_open_at_once, testing::carry_many<Pe>)
STAGED_TEST(pieces_of_all_sizes, testing::carry_pieces<Pe>)
STAGED_TEST(refusals_reach_the_posters_listener, testing::hear_refusals<Pe>)
STAGED_TEST(segment_numbers_rest_before_they_return, testing::renumber_segments<Pe>)
STAGED_TEST(notes_reach_their_listener, testing::pass_notes<Pe>)

/// Words of signals in plain memory, as a device communicator has them.
struct PlainWords {
  explicit PlainWords(Pe& of) : pe(of) {
    EXPECT_OK(
        pe.carrier().add_segment(reinterpret_cast<std::byte*>(words.data()), sizeof words, own));
    numbers = pe.share(own);
  }
  ~PlainWords() {
    pe.barrier();
    pe.carrier().remove_segment(own);
  }
  PlainWords(const PlainWords&) = delete;
  PlainWords& operator=(const PlainWords&) = delete;

  void raise(Counted& request, std::uint64_t value, bool strong) const {
    const auto number = static_cast<SegmentNumber>(numbers[static_cast<std::size_t>(request.rank)]);
    request.signal = {true, strong, number, SignalOp::kAdd, 0, value};
  }
  std::uint64_t seen() { return std::atomic_ref(words[0]).load(std::memory_order_acquire); }

  Pe& pe;
  std::array<std::uint64_t, 64> words{};
  SegmentNumber own = 0;
  std::vector<std::uint64_t> numbers;
};

/// A strong signal of plain memory, alone or with a plain payload, comes behind the copies of puts
/// before it; a weak one of a put behind its own.
void signal_behind_copies(Pe& pe) {
  constexpr std::size_t kEach = 200'000;
  Offered<Pe> offered(pe);
  PlainWords words(pe);
  std::vector<std::byte> mine(kEach);
  std::uint64_t payload = 0, awaited = 0;
  const int peer = pe.rank ^ 1;
  for (unsigned round = 0; round < 12; ++round) {
    testing::fill_carried(mine.data(), kEach, round);
    std::deque<Counted> requests;
    offered.aim(requests.emplace_back(), kPut, peer, 0, mine.data(), kEach);
    if (round % 3 == 2) words.raise(requests.back(), 1, false);
    offered.post(requests.back());
    if (round % 3 != 2) {
      Counted& strong = requests.emplace_back();
      strong.kind = kPut;
      strong.rank = peer;
      strong.listener = offered.listener;
      words.raise(strong, 1, true);
      if (round % 3 == 1) {
        payload = round;
        strong.segment = strong.signal.segment;
        strong.offset = 8;
        strong.local = &payload;
        strong.bytes = 8;
      }
      offered.post(strong);
    }
    ++awaited;
    pe.await([&] { return words.seen() == awaited; });
    EXPECT(testing::holds_carried(pe.memory, kEach, round));
    if (round % 3 == 1) EXPECT(words.words[1] == round);
    pe.await([&] { return std::ranges::all_of(requests, &Counted::is_over); });
    pe.barrier();
  }
  EXPECT(offered.refusals.load() == 0);
}
STAGED_TEST(strong_signals_come_behind_copies, signal_behind_copies)

/// What a proxy's put was complete with is at the target when quiet_carried() returns: the copies
/// too, of which no acknowledgement of messages tells.
void quiet_behind_copies(Pe& pe) {
  constexpr std::size_t kEach = 700'000;
  Offered<Pe> offered(pe);
  std::vector<std::byte> mine(kEach);
  std::atomic<std::uint64_t>& turn = pe.world->notes[0];
  for (unsigned round = 1; round <= 4; ++round) {
    if (pe.rank == 0) {
      testing::fill_carried(mine.data(), kEach, round);
      Counted put;
      offered.aim(put, kPut, 1, 0, mine.data(), kEach);
      offered.finish(put);
      pe.transport->quiet_carried();
      turn.store(round);
    } else {
      pe.await([&] { return turn.load() == round; });
      EXPECT(testing::holds_carried(pe.memory, kEach, round));
    }
    pe.barrier();
  }
}
STAGED_TEST(quiet_comes_behind_copies, quiet_behind_copies)

/// PEs send to each other at once, and every one has less bounce memory than the others want.
void crowd(Pe& pe) {
  constexpr std::size_t kEach = 100'000;
  constexpr unsigned kRounds = 6;
  Offered<Pe> offered(pe);
  PlainWords words(pe);
  std::vector<std::byte> mine(kEach);
  std::vector<std::byte> back(kEach);
  testing::fill_carried(mine.data(), kEach, static_cast<unsigned>(pe.rank));
  const std::uint64_t at = kEach * static_cast<std::uint64_t>(pe.rank);
  for (unsigned round = 1; round <= kRounds; ++round) {
    std::deque<Counted> requests;
    for (int to = 0; to < pe.size; ++to) {
      offered.aim(requests.emplace_back(), kPut, to, at, mine.data(), kEach);
      offered.raise(requests.back(), SignalOp::kAdd, 1, round % 2 == 0);
      requests.emplace_back().rank = to;
      words.raise(requests.back(), 1, true);
    }
    // Whoever finds no room lets the others pass, as the lanes of a proxy do.
    std::vector<Counted*> next;
    for (Counted& request : requests) next.push_back(&request);
    pe.await([&] {
      std::vector<int> full;
      std::erase_if(next, [&](Counted* request) {
        if (std::ranges::find(full, request->rank) != full.end()) return false;
        const bool done = pe.carrier().post(*request);
        if (!done) full.push_back(request->rank);
        return done;
      });
      return next.empty();
    });
    const auto awaited = std::uint64_t{round} * static_cast<unsigned>(pe.size);
    pe.await([&] { return words.seen() == awaited; });
    EXPECT(offered.word().load() == awaited);
    for (int from = 0; from < pe.size; ++from) {
      EXPECT(testing::holds_carried(pe.memory + kEach * static_cast<std::size_t>(from), kEach,
                                    static_cast<unsigned>(from)));
    }
    pe.await([&] { return std::ranges::all_of(requests, &Counted::is_over); });
    Counted get;
    offered.aim(get, kGet, (pe.rank + 1) % pe.size, at, back.data(), kEach);
    offered.finish(get);
    EXPECT(back == mine);
    pe.barrier();
  }
}

START_TEST(a_crowd_shares_one_piece) {
  ck_assert_int_eq(run_pes(staged(_i, 1, 4), crowd), 0);
}
END_TEST

/// PE 1 stands still: what PE 0 has for it stays where it is, and traffic with PE 2 goes on.
void pass_a_silent_peer(Pe& pe) {
  constexpr std::size_t kEach = 300'000;
  constexpr std::uint64_t kCount = 20;
  Offered<Pe> offered(pe);
  std::vector<std::byte> mine(kEach, std::byte{7});
  std::atomic<std::uint64_t>& turn = pe.world->notes[0];
  if (pe.rank != 1) offered.drain(1);
  pe.barrier();
  std::deque<Counted> requests;
  const auto put = [&](int to) -> Counted& {
    Counted& request = requests.emplace_back();
    offered.aim(request, kPut, to, 0, mine.data(), kEach);
    offered.raise(request, SignalOp::kAdd, 1, false);
    return request;
  };
  if (pe.rank == 1) {
    pe.await([&] { return turn.load() == 2; }, true);
  } else {
    Counted& first = put(1);
    for (int tries = 0; tries < 1000; ++tries) {
      EXPECT(!pe.carrier().post(first));
      pe.progress();
    }
    const int other = 2 - pe.rank;
    for (std::uint64_t i = 0; i < kCount; ++i) offered.finish(put(other));
    pe.await([&] { return offered.word().load() == kCount; });
    EXPECT(!first.is_over());
    turn.fetch_add(1);
    offered.finish(first);
  }
  if (pe.rank == 1) pe.await([&] { return offered.word().load() == 2; });
}

START_TEST(a_silent_peer_holds_nobody_up) {
  ck_assert_int_eq(run_pes(staged(_i, 8, 3), pass_a_silent_peer), 0);
}
END_TEST

/// A segment and its memory go while pieces of it are being copied, both ways.
void remove_what_is_copied(Pe& pe) {
  constexpr std::size_t kBytes = 4 << 20;
  Offered<Pe> offered(pe);
  std::byte* const pages = testing::map_pages(kBytes);
  SegmentNumber number = 0;
  EXPECT_OK(offered.add(pages, kBytes, number));
  const std::vector<std::uint64_t> numbers = pe.share(number);
  std::vector<std::byte> mine(kBytes), back(kBytes);
  std::atomic<std::uint64_t>& turn = pe.world->notes[0];
  if (pe.rank == 0) offered.drain(1);
  pe.barrier();
  if (pe.rank == 0) {
    Counted get, put;
    offered.aim(get, kGet, 1, 0, back.data(), kBytes);
    offered.aim(put, kPut, 1, 0, mine.data(), kBytes);
    for (Counted* request : {&get, &put}) {
      request->segment = static_cast<SegmentNumber>(numbers[1]);
      pe.await([&] {
        turn.store(1);
        return pe.carrier().post(*request);
      });
    }
    pe.await([&] { return get.is_over() && put.is_over(); });
    EXPECT(get.completions.load() == 1 && put.completions.load() == 1);
    EXPECT(offered.refusals.load() == 0 || offered.first.size == 0);
    turn.store(2);
  } else {
    pe.await([&] { return turn.load() != 0; }, true);
    for (int i = 0; i < 50; ++i) pe.progress();
    pe.carrier().remove_segment(number);
    offered.guards.pop_back();
    EXPECT(::munmap(pages, kBytes) == 0);
    pe.await([&] { return turn.load() == 2; });
  }
  pe.barrier();
  if (pe.rank == 0) pe.carrier().remove_segment(number);
}
STAGED_TEST(a_segment_goes_while_it_is_copied, remove_what_is_copied)

/// PE 1 is killed with the only piece of PE 0, and while PE 0 waits for one of its. Requests end
/// with its name, and the piece serves PE 2.
void lose_a_peer(Pe& pe) {
  std::vector<std::unique_ptr<device::GuardedRange>> guards;
  const auto guard = [&](std::byte* real, std::size_t bytes) {
    EXPECT_OK(device::GuardedRange::make(real, bytes, guards.emplace_back()));
    return guards.back()->base();
  };
  SegmentNumber number = 0;
  EXPECT_OK(pe.carrier().add_staged_segment(guard(pe.memory, testing::kCarrierBytes),
                                            testing::kCarrierBytes, *pe.kind, number));
  const std::vector<std::uint64_t> numbers = pe.share(number);
  std::vector<std::byte> mine(1 << 20, std::byte{3});
  std::byte* const guarded = guard(mine.data(), mine.size());
  const auto aim = [&](Counted& request, CarriedRequest::Kind kind, int rank) {
    request.kind = kind;
    request.rank = rank;
    request.segment = static_cast<SegmentNumber>(numbers[static_cast<std::size_t>(rank)]);
    if (kind == CarriedRequest::Kind::kDrain) return;
    request.local = guarded;
    request.local_kind = pe.kind;
    request.bytes = mine.size();
  };
  std::atomic<std::uint64_t>& turn = pe.world->notes[0];
  Counted hello;
  aim(hello, CarriedRequest::Kind::kDrain, pe.rank == 0 ? 1 : 0);
  pe.await([&] { return pe.carrier().post(hello); });
  pe.await([&] { return hello.is_over(); });
  pe.barrier();
  if (pe.rank == 1) {
    Counted put;
    aim(put, kPut, 0);
    put.local = mine.data();
    EXPECT(!pe.transport->post(put));  // it asks
    for (int i = 0; i < 20'000; ++i) pe.transport->progress();
    turn.store(1);
    pe.await([&] { return turn.load() == 2; }, true);
    ::kill(::getpid(), SIGKILL);
  }
  pe.await([&] { return turn.load() != 0; });
  Counted late;
  if (pe.rank == 0) {
    std::deque<Counted> requests;
    for (const auto kind : {kGet, kPut, CarriedRequest::Kind::kDrain}) {
      aim(requests.emplace_back(), kind, 1);
      for (int tries = 0; tries < 100; ++tries) {
        if (pe.carrier().post(requests.back())) break;
        pe.progress();
      }
    }
    turn.store(2);
    for (Counted& request : requests) {
      pe.await([&] { return request.is_over() || pe.carrier().post(request); });
      pe.await([&] { return request.is_over(); });
      EXPECT(!request.status.ok());
      EXPECT(request.status.message().find("PE 1 ") != std::string::npos);
      EXPECT(request.completions.load() == 1);
    }
    EXPECT(pe.staging->is_empty());
    pe.await([&] { return pe.word(testing::kWordsAt / 8).load() == 5; });
    EXPECT(pe.memory[0] == std::byte{3} && pe.memory[mine.size() - 1] == std::byte{3});
    turn.store(3);
  } else {
    aim(late, kPut, 0);
    late.signal = {true, false, late.segment, SignalOp::kSet, testing::kWordsAt, 5};
    pe.await([&] { return pe.carrier().post(late); });
    pe.await([&] { return late.is_over(); });
    EXPECT_OK(std::move(late.status));
    pe.await([&] { return turn.load() == 3; });
  }
}

START_TEST(killed_peer_gives_its_pieces_back) {
  Options options = staged(_i, 1, 3);
  options.killed = 1;
  ck_assert_int_eq(run_pes(options, lose_a_peer), 0);
}
END_TEST

/// Messages of staging that no source sends: without a grant, too much, from nobody.
std::uint64_t talk_nonsense(Pe& pe, Stranger& stranger) {
  using ucx::MessageKind;
  std::uint64_t said = 0;
  ucx::MessageHeader header{};
  const auto say = [&](MessageKind kind, std::uint32_t bytes, std::size_t payload) {
    header.kind = kind;
    header.bytes = bytes;
    stranger.say(pe, header, payload);
    ++said;
  };
  header.segment = kFirstStaged;
  say(MessageKind::kStageData, 8, 8);  // nothing was granted
  say(MessageKind::kStagePart, 8, 8);
  say(MessageKind::kStagePut, 8, 8);
  say(MessageKind::kStageRead, 8, 0);
  say(MessageKind::kStageAsk, 0, 0);
  say(MessageKind::kStageAsk, ~0u, 0);
  say(MessageKind::kStageNews, 1, 0);  // nobody asked
  header.operand = 1;
  say(MessageKind::kStageNews, 0, 0);  // no piece was used
  header.operand = 0;
  header.kind = MessageKind::kStageAsk;
  header.bytes = 1;
  EXPECT(stranger.ask(pe, header).bytes == 1);
  say(MessageKind::kStageData, 9, 8);
  say(MessageKind::kStageRead, 0, 0);
  say(MessageKind::kStageRead, (256u << 10) + 1, 0);
  header.op = 8;
  say(MessageKind::kStagePut, 8, 8);
  header.op = 0;
  for (int i = 0; i < 64; ++i) {
    say(MessageKind::kStageData, 4096, 4096);
    --said;
  }
  say(MessageKind::kStageData, 1, 1);  // the piece is full
  return said;
}

void hear_strangers(Pe& pe) {
  Offered<Pe> offered(pe);
  if (pe.rank == 0) {
    Stranger stranger(pe, 1);
    pe.world->notes[0].store(talk_nonsense(pe, stranger));
    pe.await([&] { return pe.world->notes[1].load() == 1; });
    return;
  }
  pe.await([&] {
    const std::uint64_t said = pe.world->notes[0].load();
    return said != 0 && pe.transport->strangers() == said;
  });
  for (std::size_t i = 0; i < testing::kCarrierBytes; ++i) EXPECT(pe.memory[i] == std::byte{0});
  pe.world->notes[1].store(1);
}

START_TEST(strangers_are_refused_and_counted) {
  ck_assert_int_eq(run_pes(staged(_i, 8), hear_strangers), 0);
}
END_TEST

Suite* make_suite(bool newer) {
  Suite* suite = suite_create(newer ? "ucx_staging, newer protocols" : "ucx_staging");
  TCase* cases = tcase_create("ucx_staging");
  tcase_set_timeout(cases, 60);
  for (const TTest* test :
       {puts_arrive_before_their_signals, gets_bring_all_sizes, updates_do_what_they_say,
        many_requests_are_open_at_once, pieces_of_all_sizes, strong_signals_come_behind_copies,
        quiet_comes_behind_copies, refusals_reach_the_posters_listener,
        segment_numbers_rest_before_they_return, notes_reach_their_listener,
        a_segment_goes_while_it_is_copied})
    tcase_add_loop_test(cases, test, 0, 2 * kNetworkCount);
  for (const TTest* test : {a_crowd_shares_one_piece, a_silent_peer_holds_nobody_up,
                            killed_peer_gives_its_pieces_back, strangers_are_refused_and_counted})
    tcase_add_loop_test(cases, test, 0, kNetworkCount);
  suite_add_tcase(suite, cases);
  return suite;
}

}  // namespace

int main() {
  return gimlet::tests::run_with_both_protocols(make_suite);
}
