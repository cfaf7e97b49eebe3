// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "late_memory.h"
#include "local_ranks.h"
#include "pgas/group.h"
#include "pgas/transport/staged_segments.h"
#include "pgas/transport/staging_carrier.h"

/// Ends the process with a sentence unless `condition` holds.
#define EXPECT(condition)                                                                    \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", pe.rank, __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                                         \
    }                                                                                        \
  } while (false)
#define EXPECT_OK(expression) EXPECT((expression).ok())

#include "carrier_cases.h"
// After the others: Check defines a macro named fail.
#include "suite.h"

namespace {

using gimlet::Status;
using gimlet::pgas::Carrier;
using gimlet::pgas::Group;
using gimlet::tests::Groups;
using gimlet::tests::on_each_rank;

/// A rank that is a thread.
struct LocalPe {
  int rank = 0;
  int size = 0;
  Group* group = nullptr;
  std::byte* memory = nullptr;
  const gimlet::device::MemoryKind* kind = nullptr;
  std::unique_ptr<gimlet::pgas::StagingCarrier> staging{};

  Carrier& carrier() const {
    if (staging != nullptr) return *staging;
    Status why_not;
    return *group->carrier(why_not);
  }
  void stage(const gimlet::device::MemoryKind& all, std::size_t bytes) {
    kind = &all;
    Status why_not;
    const gimlet::device::MemoryKind* const kinds[] = {kind};
    if (!gimlet::pgas::StagingCarrier::make(bytes, *group->carrier(why_not), kinds, staging).ok())
      std::_Exit(1);
  }
  void barrier() const {
    if (!group->barrier().ok()) std::_Exit(1);
  }
  std::vector<std::uint64_t> share(std::uint64_t value) const {
    std::vector<std::uint64_t> all(static_cast<std::size_t>(size));
    const std::span mine(&value, 1);
    if (!group->allgather(std::as_bytes(mine), std::as_writable_bytes(std::span(all))).ok())
      std::_Exit(1);
    return all;
  }
  template <class Done>
  void await(Done&& done) const {
    while (!done()) {
      if (staging != nullptr) staging->progress();
      std::this_thread::yield();
    }
  }
};

/// `staged_pieces` 0: memory is plain, otherwise nobody may touch it.
bool on_two_ranks(void (*body)(LocalPe&), std::size_t staged_pieces = 0) {
  Groups groups = gimlet::pgas::make_local_groups(2);
  return on_each_rank(groups, [&](std::unique_ptr<Group>& group) {
    std::vector<std::uint64_t> words(gimlet::pgas::testing::kCarrierBytes / sizeof(std::uint64_t));
    LocalPe pe{group->rank(), 2, group.get(), reinterpret_cast<std::byte*>(words.data())};
    if (staged_pieces != 0) {
      pe.stage(gimlet::tests::late_memory(), staged_pieces * gimlet::pgas::BouncePool::kPieceBytes);
    }
    body(pe);
    return true;
  });
}

#define CARRIER_TEST(name, body)                                   \
  START_TEST(name) {                                               \
    ck_assert(on_two_ranks(gimlet::pgas::testing::body<LocalPe>)); \
  }                                                                \
  END_TEST

CARRIER_TEST(puts_arrive_before_their_signals, carry_puts)
CARRIER_TEST(gets_bring_all_sizes, carry_gets)
CARRIER_TEST(updates_do_what_they_say, carry_updates)
CARRIER_TEST(many_requests_at_once, carry_many)
CARRIER_TEST(refusals_reach_the_posters_listener, hear_refusals)
CARRIER_TEST(segment_numbers_rest_before_they_return, renumber_segments)
CARRIER_TEST(notes_reach_their_listener, pass_notes)

CARRIER_TEST(pieces_of_all_sizes, carry_pieces)

START_TEST(staged_memory_is_carried_alike) {
  using namespace gimlet::pgas::testing;
  const std::size_t pieces = _i == 0 ? 1 : 8;
  for (void (*body)(LocalPe&) : {carry_puts<LocalPe>, carry_gets<LocalPe>, carry_updates<LocalPe>,
                                 carry_many<LocalPe>, carry_pieces<LocalPe>, hear_refusals<LocalPe>,
                                 renumber_segments<LocalPe>, pass_notes<LocalPe>})
    ck_assert(on_two_ranks(body, pieces));
}
END_TEST

/// When a removal returns no copy refers to the memory any more.
START_TEST(removal_waits_for_copies) {
  std::array<std::byte, 64> real{}, bounce;
  bounce.fill(std::byte{7});
  std::unique_ptr<gimlet::device::GuardedRange> guard;
  ck_assert(gimlet::device::GuardedRange::make(real.data(), real.size(), guard).ok());
  gimlet::pgas::StagedSegments segments;
  gimlet::pgas::SegmentNumber number = 0;
  ck_assert(segments.add(guard->base(), real.size(), gimlet::tests::late_memory(), number));
  gimlet::pgas::StagedCopy copy;
  ck_assert(segments.start_in(number, 0, bounce.data(), bounce.size(), copy));
  ck_assert(real[63] == std::byte{0} && !segments.is_over(copy));
  segments.remove(number);
  ck_assert(real == bounce);
  ck_assert(!segments.start_in(number, 0, bounce.data(), bounce.size(), copy));
}
END_TEST

/// A rank that has left offers nothing, and whoever still posts to it is told so.
START_TEST(a_rank_that_has_left_refuses) {
  struct {
    int rank = 0;
  } pe;
  Groups groups = gimlet::pgas::make_local_groups(2);
  Status why_not;
  Carrier& mine = *groups[0]->carrier(why_not);
  std::atomic<int> refusals{0};
  gimlet::pgas::ListenerNumber listener = 0;
  EXPECT_OK(mine.add_listener({[&](const auto&) { ++refusals; }, {}}, listener));
  groups[1].reset();
  std::uint64_t value = 0;
  gimlet::pgas::testing::Counted put;
  put.rank = 1;
  put.local = &value;
  put.bytes = 8;
  put.listener = listener;
  ck_assert(mine.post(put));
  ck_assert_int_eq(put.completions.load(), 1);
  ck_assert_int_eq(refusals.load(), 1);
  ck_assert(mine.post_note(1, 0, {}));
}
END_TEST

}  // namespace

int main() {
  Suite* suite = suite_create("local_carrier");
  TCase* cases = tcase_create("local_carrier");
  tcase_set_timeout(cases, 60);
  for (const TTest* test :
       {puts_arrive_before_their_signals, gets_bring_all_sizes, updates_do_what_they_say,
        many_requests_at_once, pieces_of_all_sizes, refusals_reach_the_posters_listener,
        segment_numbers_rest_before_they_return, notes_reach_their_listener,
        a_rank_that_has_left_refuses, removal_waits_for_copies})
    tcase_add_test(cases, test);
  tcase_add_loop_test(cases, staged_memory_is_carried_alike, 0, 2);
  suite_add_tcase(suite, cases);
  SRunner* runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
