// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>

#include "ucx_world.h"
// After the others: Check defines a macro named fail.
#include <check.h>

namespace {

using namespace gimlet;
using namespace gimlet::pgas;
using testing::Options;
using testing::Pe;
using testing::run_pes;

constexpr const char* kTransports[] = {"posix", "tcp"};
constexpr std::size_t kSizes[] = {0,    1,    2,    3,    4,    7,     8,     13,     64,     100,
                                  1000, 4095, 7999, 8100, 8192, 10001, 65537, 262143, 1 << 20};

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

void move_all_sizes(Pe& pe) {
  const int peer = pe.rank ^ 1;
  std::vector<std::byte> mine(1 << 20), back(1 << 20);
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
  EXPECT(pe.strangers() == 0);
}

START_TEST(put_and_get_move_all_sizes) {
  ck_assert_int_eq(run_pes({.pes = 2, .tls = kTransports[_i]}, move_all_sizes), 0);
}
END_TEST

/// Every update once, with its result, against words that only this test touches.
template <class Word>
void update_all(Pe& pe, std::uint64_t offset) {
  constexpr unsigned kWidth = sizeof(Word);
  const int peer = pe.rank ^ 1;
  const RemoteAddress word = pe.at(peer, offset);
  Word old[2] = {};
  const auto update = [&](AmoOp op, std::uint64_t operand, std::uint64_t compare = 0) {
    old[0] = 0;
    old[1] = static_cast<Word>(0x5a5a5a5a5a5a5a5a);  // a result is `width` bytes, not more
    EXPECT_OK(pe.transport->amo(op, kWidth, word, operand, compare, old));
    EXPECT(old[1] == static_cast<Word>(0x5a5a5a5a5a5a5a5a));
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
  update_all<std::uint64_t>(pe, 64);
  update_all<std::uint32_t>(pe, 128);
  // The upper half of the second word's neighbourhood was never touched.
  pe.barrier();
  EXPECT(pe.words()[16] == 6);
  EXPECT(pe.words()[8] == 6);
}

START_TEST(updates_do_what_they_say_in_both_widths) {
  ck_assert_int_eq(run_pes({.pes = 2, .tls = kTransports[_i]}, update_both_widths), 0);
}
END_TEST

/// Three PEs add to words of PE 0 while PE 0 adds by itself.
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
  ck_assert_int_eq(run_pes({.pes = 4, .tls = kTransports[_i]}, sum_concurrently), 0);
}
END_TEST

Suite* make_suite() {
  Suite* suite = suite_create("ucx_transport");
  TCase* cases = tcase_create("ucx_transport");
  tcase_set_timeout(cases, 30);
  tcase_add_loop_test(cases, put_and_get_move_all_sizes, 0, 2);
  tcase_add_loop_test(cases, updates_do_what_they_say_in_both_widths, 0, 2);
  tcase_add_loop_test(cases, concurrent_sums_are_exact, 0, 2);
  suite_add_tcase(suite, cases);
  return suite;
}

}  // namespace

int main() {
  SRunner* runner = srunner_create(make_suite());
  srunner_run_all(runner, CK_NORMAL);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? 0 : 1;
}
