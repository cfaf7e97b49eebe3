// SPDX-License-Identifier: BSD-3-Clause
// What GIN computes without a kernel: teams, layouts, tables.
#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include "gin/barrier.h"
#include "gin/communicator.h"
#include "gin/error_word.h"
#include "gin/impl/barrier_layout.h"
#include "gin/lsa_team.h"
#include "gin/memory_table.h"
#include "gin/resource_layout.h"
#include "gin/status_result.h"
#include "gin/wait_report.h"
#include "gin/window_table.h"
#include "local_ranks.h"
#include "pgas/group.h"

// After the headers above, whose name `fail` it takes.
#include "suite.h"
#undef fail

namespace {

using namespace gimlet::gin;
using gimlet::Code;
using gimlet::tests::on_each_rank;

ginDevCommRequirements_t requirements() {
  ginDevCommRequirements_t r = GIN_DEV_COMM_REQUIREMENTS_INITIALIZER;
  r.ginConnectionType = GIN_CONNECTION_FULL;
  return r;
}

Code layout_code(const ginDevCommRequirements_t& r) {
  ResourceLayout layout;
  return make_layout(&r, 4, 2, layout).code();
}

START_TEST(lsa_teams_divide_every_run) {
  const std::vector<Run> one(4, Run{0, 4});
  ck_assert_int_eq(lsa_team_size(one, 0), 4);
  ck_assert_int_eq(lsa_team_size(one, 2), 2);
  ck_assert_int_eq(lsa_team_size(one, 3), 2);
  ck_assert_int_eq(lsa_team_size(one, 1), 1);
  ck_assert_int_eq(lsa_team_size(one, 100), 4);
  const std::vector<Run> two = {{0, 4}, {0, 4}, {0, 4}, {0, 4}, {4, 2}, {4, 2}};
  ck_assert_int_eq(lsa_team_size(two, 0), 2);
  const std::vector<Run> prime(7, Run{0, 7});
  ck_assert_int_eq(lsa_team_size(prime, 2), 1);
}
END_TEST

START_TEST(lsa_teams_are_single_when_views_contradict) {
  const std::vector<Run> one_sided = {{0, 2}, {1, 1}};
  ck_assert_int_eq(lsa_team_size(one_sided, 0), 1);
  const std::vector<Run> outside = {{0, 3}, {0, 3}};
  ck_assert_int_eq(lsa_team_size(outside, 0), 1);
}
END_TEST

START_TEST(team_arithmetic_agrees_with_lists) {
  const ginTeam_t world = {12, 7, 1};
  const ginTeam_t inner = ginTeamInnerFactor(world, 4);
  ck_assert(inner.nRanks == 4 && inner.rank == 3 && inner.stride == 1);
  const ginTeam_t outer = ginTeamOuterFactor(world, 4);
  ck_assert(outer.nRanks == 3 && outer.rank == 1 && outer.stride == 4);
  for (int r = 0; r < 12; ++r) {
    const bool in_outer = r % 4 == 3;
    ck_assert_int_eq(ginTeamRankIsMember(outer, world, r), in_outer);
    if (in_outer) ck_assert_int_eq(ginTeamRankToTeam(outer, world, r), r / 4);
    ck_assert_int_eq(ginTeamRankIsMember(inner, world, r), r / 4 == 1);
  }
  for (const ginTeam_t& subset : {inner, outer}) {
    std::vector<int> others;
    for (int r = 0; r < 12; ++r) {
      if (!ginTeamRankIsMember(subset, world, r)) others.push_back(r);
    }
    for (std::size_t i = 0; i < others.size(); ++i) {
      ck_assert_int_eq(ginTeamRankInDifference(world, subset, static_cast<int>(i)), others[i]);
    }
  }
}
END_TEST

START_TEST(team_difference_handles_negative_strides) {
  const ginTeam_t world = {9, 4, 1};
  const ginTeam_t backwards = {3, 1, -3};  // 7, 4, 1
  const int others[] = {0, 2, 3, 5, 6, 8};
  for (int i = 0; i < 6; ++i) {
    ck_assert_int_eq(ginTeamRankInDifference(world, backwards, i), others[i]);
  }
}
END_TEST

START_TEST(rolling_comparison_survives_the_turn) {
  ck_assert(::gin::impl::rolling_at_most(5, 5, 64));
  ck_assert(::gin::impl::rolling_at_most(5, 6, 64));
  ck_assert(!::gin::impl::rolling_at_most(6, 5, 64));
  ck_assert(::gin::impl::rolling_at_most(UINT64_MAX, 3, 64));
  ck_assert(::gin::impl::rolling_at_most(250, 260, 8));
  ck_assert(::gin::impl::rolling_at_most(260, 4, 8));
  ck_assert(!::gin::impl::rolling_at_most(4, 250, 8));
}
END_TEST

START_TEST(barriers_need_few_words) {
  using ::gin::impl::barrier_words;
  ck_assert_uint_eq(barrier_words(1), 2);
  ck_assert_uint_eq(barrier_words(32), 64);
  ck_assert_uint_eq(barrier_words(33), 12);
  ck_assert_uint_eq(barrier_words(64), 12);
  ck_assert_uint_eq(barrier_words(65), 14);
  ck_assert_uint_eq(barrier_words(65536), 32);
  ck_assert_uint_eq(::gin::impl::barrier_pitch(4) % 8, 0);
}
END_TEST

START_TEST(layout_keeps_everything_apart) {
  ginDevCommRequirements_t r = requirements();
  ginDevResourceRequirements_t second = {};
  second.bufferSize = 10;
  second.bufferAlign = 1024;
  second.ginSignalCount = 3;
  ginDevResourceRequirements_t first = {};
  first.next = &second;
  first.bufferSize = 1;
  first.ginCounterCount = 2;
  r.resourceRequirementsList = &first;
  r.ginContextCount = 3;
  r.ginSignalCount = 5;
  r.ginCounterCount = 1;
  r.worldGinBarrierCount = 2;
  r.railGinBarrierCount = 1;
  ResourceLayout l;
  ck_assert(make_layout(&r, 4, 2, l).ok());
  ck_assert_uint_eq(l.contexts, 3);
  ck_assert_uint_ge(l.world_barrier.signal0, 5);
  ck_assert_uint_eq(l.world_barrier.signal0 % 8, 0);
  ck_assert_uint_ge(l.rail_barrier.signal0,
                    l.world_barrier.signal0 + 2 * ::gin::impl::barrier_pitch(4));
  ck_assert_uint_ge(l.grants[1].first_signal,
                    l.rail_barrier.signal0 + ::gin::impl::barrier_pitch(2));
  ck_assert_uint_eq(l.signals, l.grants[1].first_signal + 3);
  ck_assert_uint_eq(l.grants[0].first_counter, 1);
  ck_assert_uint_eq(l.counters, 3);
  ck_assert_uint_ge(l.signals_pitch, 8 * l.signals);
  ck_assert_uint_eq(l.signals_pitch % 128, 0);
  ck_assert_uint_ge(l.signals_offset, sizeof(ginErrorWord));
  ck_assert_uint_eq(l.shadows_offset, l.signals_offset + 3 * l.signals_pitch);
  ck_assert_uint_eq(l.counters_offset, l.shadows_offset + 3 * l.signals_pitch);
  ck_assert_uint_eq(l.slots_offset, l.counters_offset + 3 * l.counters_pitch);
  ck_assert_uint_ge(l.grants[0].buffer_offset, l.slots_offset + 4 * 4);
  ck_assert_uint_eq(l.grants[0].buffer_offset % 128, 0);
  ck_assert_uint_eq(l.grants[1].buffer_offset % 1024, 0);
  ck_assert_uint_eq(l.bytes, l.grants[1].buffer_offset + 10);
}
END_TEST

START_TEST(layout_refuses_what_is_not_allowed) {
  ck_assert_int_eq(static_cast<int>(layout_code(requirements())), static_cast<int>(Code::kOk));
  ResourceLayout layout;
  ck_assert(make_layout(nullptr, 4, 2, layout).code() == Code::kInvalidArgument);
  ginDevCommRequirements_t r = {};
  ck_assert(layout_code(r) == Code::kInvalidUsage);
  r = requirements();
  r.size -= 8;
  ck_assert(layout_code(r) == Code::kInvalidUsage);
  r = requirements();
  r.version = GIN_VERSION_CODE + 1;
  ck_assert(layout_code(r) == Code::kInvalidUsage);
  r = requirements();
  r.ginSignalCount = -1;
  ck_assert(layout_code(r) == Code::kInvalidArgument);
  r = requirements();
  r.ginSignalCount = INT32_MAX;
  r.worldGinBarrierCount = INT32_MAX;
  ck_assert(layout_code(r) == Code::kInvalidArgument);
  r = requirements();
  r.ginCounterCount = 65536;
  ck_assert(layout_code(r) == Code::kInvalidArgument);
  r = requirements();
  r.ginConnectionType = GIN_CONNECTION_NONE;
  r.ginSignalCount = 1;
  ck_assert(layout_code(r) == Code::kInvalidArgument);
  r.ginForceEnable = true;
  ck_assert(layout_code(r) == Code::kOk);
  r = requirements();
  r.ginConnectionType = GIN_CONNECTION_RAIL;
  r.worldGinBarrierCount = 1;
  ck_assert(layout_code(r) == Code::kInvalidArgument);
  r = requirements();
  r.lsaMultimem = true;
  ck_assert(layout_code(r) == Code::kInvalidUsage);
  r = requirements();
  ginDevResourceRequirements_t entry = {};
  entry.bufferAlign = 3;
  r.resourceRequirementsList = &entry;
  ck_assert(layout_code(r) == Code::kInvalidArgument);
  entry.bufferAlign = 0;
  entry.bufferSize = SIZE_MAX;
  ck_assert(layout_code(r) == Code::kInvalidArgument);
}
END_TEST

START_TEST(memory_is_found_from_within) {
  MemoryTable table;
  void* address = nullptr;
  ck_assert(table.allocate(100, address).ok());
  auto* bytes = static_cast<char*>(address);
  MemoryPiece piece;
  ck_assert(table.find(bytes + 16, 84, piece).ok());
  ck_assert_uint_eq(piece.offset, 16);
  ck_assert(table.find(bytes, piece.memory->size() + 1, piece).code() == Code::kInvalidArgument);
  ck_assert(table.find(bytes - 1, 1, piece).code() == Code::kInvalidArgument);
  ck_assert(table.release(bytes + 16).code() == Code::kInvalidArgument);
  ck_assert(table.release(bytes).ok());
  ck_assert(table.release(bytes).code() == Code::kInvalidArgument);
  bytes[99] = 1;  // the piece keeps it alive
  ck_assert(table.find(bytes, 1, piece).code() == Code::kInvalidArgument);
}
END_TEST

START_TEST(windows_are_found_by_handle_only) {
  WindowTable table;
  ck_assert(table.open().ok());
  std::set<ginWindow_t> handles;
  for (std::uint32_t i = 0; i < WindowTable::kCapacity; ++i) {
    ginWindow_t handle = nullptr;
    ck_assert(table.add(Window{}, ginWindowEntry{}, handle).ok());
    handles.insert(handle);
    ck_assert_uint_eq(handle->live, GIN_WINDOW_LIVE);
  }
  ck_assert_uint_eq(handles.size(), WindowTable::kCapacity);
  ginWindow_t one_more = nullptr;
  ck_assert(table.add(Window{}, ginWindowEntry{}, one_more).code() == Code::kNoMemory);
  ginWindow_t victim = *std::next(handles.begin(), 100);
  ck_assert_ptr_nonnull(table.find(victim));
  ck_assert(table.remove(victim).ok());
  ck_assert_uint_eq(victim->live, 0);
  ck_assert_ptr_null(table.find(victim));
  ck_assert(table.remove(victim).code() == Code::kInvalidArgument);
  auto* inside = reinterpret_cast<ginWindow_t>(reinterpret_cast<char*>(*handles.begin()) + 8);
  ck_assert_ptr_null(table.find(inside));
  ck_assert_ptr_null(table.find(nullptr));
  ck_assert(table.add(Window{}, ginWindowEntry{}, one_more).ok());
  ck_assert_ptr_eq(one_more, victim);
}
END_TEST

START_TEST(first_error_stays) {
  ginErrorWord word = {};
  ck_assert_int_eq(read_error(word), ginSuccess);
  std::atomic<int> winners{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      ErrorRecord record;
      record.code = static_cast<ginResult_t>(ginInvalidArgument + t);
      record.rank = t;
      if (set_error(word, record)) winners.fetch_add(1);
    });
  }
  for (auto& thread : threads) thread.join();
  ck_assert_int_eq(winners.load(), 1);
  ck_assert_int_eq(read_error(word), ginInvalidArgument + word.rank);
}
END_TEST

START_TEST(long_waits_fill_few_lines) {
  ReportBudget budget;
  std::uint32_t unsaid = 0;
  int lines = 0;
  for (int i = 0; i < 100; ++i) lines += budget.take(1000, 100, unsaid) ? 1 : 0;
  ck_assert_int_eq(lines, ReportBudget::kLines);
  ck_assert(budget.take(1100, 100, unsaid));
  ck_assert_uint_eq(unsaid, 100 - ReportBudget::kLines);
}
END_TEST

START_TEST(threads_gather_and_notice_who_left) {
  auto groups = gimlet::pgas::make_local_groups(3);
  ck_assert(on_each_rank(groups, [](auto& mine) {
    bool good = true;
    for (int round = 0; round < 50; ++round) {
      const int own = mine->rank() + 10 * round;
      int all[3] = {};
      const auto status = mine->allgather(std::as_bytes(std::span(&own, 1)),
                                          std::as_writable_bytes(std::span(all)));
      good = good && status.ok();
      for (int r = 0; r < 3; ++r) good = good && all[r] == r + 10 * round;
    }
    if (mine->rank() != 2) return mine->barrier().code() == Code::kRemote && good;
    mine.reset();  // leaves
    return good;
  }));
}
END_TEST

/// Ranks of which the last lives on another node.
class TwoNodes final : public gimlet::pgas::Group {
 public:
  explicit TwoNodes(std::unique_ptr<Group> ranks) : ranks_(std::move(ranks)) {}
  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  int world_pe(int rank) const override { return rank; }
  bool is_mappable(int other, std::string* why_not) const override {
    if ((other == size() - 1) == (rank() == size() - 1)) return true;
    if (why_not != nullptr) *why_not = "it lives on another node";
    return false;
  }
  gimlet::Status barrier() override { return ranks_->barrier(); }
  gimlet::Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return ranks_->allgather(mine, all);
  }
  gimlet::Status map_peers(const gimlet::device::Memory* mine, PeerMemory& peers) override {
    GIMLET_TRY(ranks_->map_peers(mine, peers));
    for (int r = 0; r < size(); ++r) {
      if (!is_mappable(r, nullptr)) peers.base[static_cast<std::size_t>(r)] = nullptr;
    }
    return {};
  }
  gimlet::pgas::Carrier* carrier(gimlet::Status& why_not) override {
    why_not = gimlet::fail(Code::kUnreachable, "no network leads there");
    return nullptr;
  }
  int dead_rank() const override { return -1; }
  [[noreturn]] void abort(int status, const std::string& why) override {
    ranks_->abort(status, why);
    ::abort();
  }

 private:
  std::unique_ptr<Group> ranks_;
};

/// What each rank of five has to find: device code reaches its own node only.
bool is_right_on_two_nodes(Communicator& comm) {
  bool all_good = true;
  const auto expect = [&](bool good) { all_good = all_good && good; };
  const int peer = comm.rank() == 4 ? 0 : 4;
  expect(comm.lsa_size() == 1);
  std::string why;
  expect(!comm.reaches(GIN_CONNECTION_FULL, &why));
  expect(why ==
         "rank " + std::to_string(peer) + ": it lives on another node; no network leads there");
  const char* path = nullptr;
  expect(comm.path_name(peer, path).ok() && path == std::string("none"));
  expect(comm.path_name(comm.rank(), path).ok() && path == std::string("direct"));

  void* memory = nullptr;
  expect(MemoryTable::of_process().allocate(64, memory).ok());
  ginWindow_t window = nullptr;
  expect(comm.register_window(memory, 64, 0, window).ok());

  ginDevCommRequirements_t r = requirements();
  ginDevComm device_comm;
  const gimlet::Status refused = comm.create_device_comm(&r, device_comm);
  expect(refused.code() == Code::kUnreachable);
  expect(refused.message().find(why) != std::string::npos);
  r.ginConnectionType = GIN_CONNECTION_NONE;
  expect(comm.create_device_comm(&r, device_comm).ok());
  expect(device_comm.ginContextCount == 0);
  expect(comm.destroy_device_comm(device_comm).ok());
  expect(comm.destroy_device_comm(device_comm).code() == Code::kInvalidArgument);
  expect(comm.deregister_window(window).ok());
  expect(MemoryTable::of_process().release(memory).ok());
  return all_good;
}

START_TEST(unreachable_ranks_are_named) {
  auto groups = gimlet::pgas::make_local_groups(5);
  ck_assert(on_each_rank(groups, [](auto& mine) {
    std::unique_ptr<Communicator> comm;
    const gimlet::Status made = Communicator::over(std::make_unique<TwoNodes>(std::move(mine)),
                                                   Communicator::Members::kThreads, comm);
    return made.ok() && is_right_on_two_nodes(*comm);
  }));
}
END_TEST

START_TEST(every_result_has_a_text) {
  std::set<std::string> texts;
  for (int r = ginSuccess; r < ginNumResults; ++r) {
    texts.insert(ginGetErrorString(static_cast<ginResult_t>(r)));
  }
  ck_assert_uint_eq(texts.size(), ginNumResults);
  ck_assert_int_eq(finish("call", gimlet::fail(Code::kTimeout, "it took {} s", 3)), ginTimeout);
  ck_assert_str_eq(ginGetLastError(), "call: it took 3 s");
}
END_TEST

}  // namespace

int main() {
  return gimlet::tests::run_suite(
      "gin core",
      {lsa_teams_divide_every_run, lsa_teams_are_single_when_views_contradict,
       team_arithmetic_agrees_with_lists, team_difference_handles_negative_strides,
       rolling_comparison_survives_the_turn, barriers_need_few_words, layout_keeps_everything_apart,
       layout_refuses_what_is_not_allowed, memory_is_found_from_within,
       windows_are_found_by_handle_only, first_error_stays, long_waits_fill_few_lines,
       threads_gather_and_notice_who_left, unreachable_ranks_are_named, every_result_has_a_text});
}
