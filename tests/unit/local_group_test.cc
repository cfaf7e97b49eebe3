// SPDX-License-Identifier: BSD-3-Clause
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/memory_kind.h"
#include "local_ranks.h"
#include "pgas/group.h"
#include "suite.h"

namespace {

using gimlet::Code;
using gimlet::Status;
using gimlet::device::host_memory;
using gimlet::device::Memory;
using gimlet::pgas::Group;
using gimlet::pgas::make_local_groups;
using gimlet::tests::Groups;
using gimlet::tests::on_each_rank;

void be_late(int rank, int round) {
  if ((rank * 7 + round * 3) % 5 == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (rank + 1)));
}

std::byte byte_of(int rank, std::size_t i) {
  return static_cast<std::byte>(static_cast<std::size_t>(rank) * 31 + i * 7 + 1);
}

START_TEST(ranks_are_numbered) {
  for (const int ranks : {1, 2, 5}) {
    Groups groups = make_local_groups(ranks);
    ck_assert_uint_eq(groups.size(), static_cast<unsigned>(ranks));
    for (int r = 0; r < ranks; ++r) {
      const Group& group = *groups[static_cast<std::size_t>(r)];
      ck_assert_int_eq(group.rank(), r);
      ck_assert_int_eq(group.size(), ranks);
      ck_assert_int_eq(group.dead_rank(), -1);
      for (int peer = 0; peer < ranks; ++peer) {
        ck_assert(group.is_mappable(peer));
        ck_assert_int_eq(group.world_pe(peer), peer);
      }
    }
  }
}
END_TEST

START_TEST(nobody_leaves_a_barrier_early) {
  constexpr int kRanks = 4;
  constexpr int kRounds = 200;
  Groups groups = make_local_groups(kRanks);
  std::atomic<int> entered{0};
  ck_assert(on_each_rank(groups, [&](auto& group) {
    for (int round = 1; round <= kRounds; ++round) {
      be_late(group->rank(), round);
      ++entered;
      if (!group->barrier().ok() || entered < round * kRanks) return false;
    }
    return true;
  }));
  ck_assert_int_eq(entered, kRanks * kRounds);
}
END_TEST

/// What a rank stored before the barrier is there for the others after it, without an atomic.
START_TEST(a_barrier_publishes) {
  constexpr int kRanks = 3;
  Groups groups = make_local_groups(kRanks);
  int plain[kRanks] = {};
  ck_assert(on_each_rank(groups, [&](auto& group) {
    for (int round = 1; round <= 50; ++round) {
      plain[group->rank()] = round * 10 + group->rank();
      if (!group->barrier().ok()) return false;
      for (int peer = 0; peer < kRanks; ++peer) {
        if (plain[peer] != round * 10 + peer) return false;
      }
      if (!group->barrier().ok()) return false;
    }
    return true;
  }));
}
END_TEST

START_TEST(allgather_brings_all_in_order) {
  for (const int ranks : {1, 2, 4}) {
    Groups groups = make_local_groups(ranks);
    ck_assert(on_each_rank(groups, [&](auto& group) {
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{24},
                                      std::size_t{4097}, std::size_t{100000}}) {
        std::vector<std::byte> mine(bytes);
        for (std::size_t i = 0; i < bytes; ++i) mine[i] = byte_of(group->rank(), i);
        std::vector<std::byte> all(bytes * static_cast<std::size_t>(ranks));
        be_late(group->rank(), static_cast<int>(bytes));
        if (!group->allgather(mine, all).ok()) return false;
        mine.assign(bytes, std::byte{0});  // is not read any more
        for (int peer = 0; peer < ranks; ++peer) {
          for (std::size_t i = 0; i < bytes; ++i) {
            if (all[static_cast<std::size_t>(peer) * bytes + i] != byte_of(peer, i)) return false;
          }
        }
      }
      return true;
    }));
  }
}
END_TEST

START_TEST(map_peers_gives_the_memory_of_each) {
  constexpr int kRanks = 3;
  Groups groups = make_local_groups(kRanks);
  ck_assert(on_each_rank(groups, [&](auto& group) {
    const auto me = static_cast<std::size_t>(group->rank());
    // Sizes differ; rank 1 offers nothing.
    std::unique_ptr<Memory> mine;
    if (me != 1 && !host_memory().allocate(4096 * (me + 1), "test", mine).ok()) return false;
    Group::PeerMemory peers;
    if (!group->map_peers(mine.get(), peers).ok()) return false;
    if (peers.base.size() != kRanks || peers.size.size() != kRanks) return false;
    if (peers.base[1] != nullptr || peers.size[1] != 0) return false;
    for (const std::size_t peer : {std::size_t{0}, std::size_t{2}}) {
      if (peers.base[peer] == nullptr || peers.size[peer] != 4096 * (peer + 1)) return false;
      peers.base[peer][me] = byte_of(group->rank(), peer);
    }
    if (mine != nullptr && peers.base[me] != mine->base()) return false;
    bool good = group->barrier().ok();
    for (int peer = 0; mine != nullptr && peer < kRanks; ++peer)
      good = good && mine->base()[peer] == byte_of(peer, me);
    return group->barrier().ok() && good;  // memory goes when nobody looks at it any more
  }));
}
END_TEST

/// Whoever waits for a rank that has gone hears of it instead of waiting for ever.
START_TEST(a_rank_that_leaves_ends_the_waits) {
  Groups groups = make_local_groups(3);
  std::thread leaver([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    groups[2].reset();
  });
  std::atomic<int> told{0};
  const auto wait_for_it = [&](Group& group) {
    const Status status = group.barrier();
    if (status.code() == Code::kRemote && status.message().find("rank 2") != std::string::npos)
      ++told;
    // And again: the group does not come back.
    std::byte one{1};
    std::byte all[3];
    if (!group.allgather(std::span(&one, 1), all).ok()) ++told;
    Group::PeerMemory peers;
    if (!group.map_peers(nullptr, peers).ok()) ++told;
  };
  std::thread first(wait_for_it, std::ref(*groups[0]));
  std::thread second(wait_for_it, std::ref(*groups[1]));
  first.join();
  second.join();
  leaver.join();
  ck_assert_int_eq(told, 6);
}
END_TEST

/// A rank may go as soon as it has left the last barrier, although others have still to wake up.
START_TEST(leaving_after_the_last_barrier_is_no_loss) {
  for (int round = 0; round < 200; ++round) {
    Groups groups = make_local_groups(3);
    ck_assert(on_each_rank(groups, [](auto& group) {
      const bool good = group->barrier().ok();
      group.reset();
      return good;
    }));
  }
}
END_TEST

START_TEST(groups_do_not_meet_each_other) {
  Groups one = make_local_groups(2);
  Groups other = make_local_groups(2);
  std::atomic<bool> other_left{false};
  std::thread early([&] {
    (void)other[0]->barrier();
    other_left = true;
  });
  for (int i = 0; i < 20; ++i)
    ck_assert(on_each_rank(one, [](auto& group) { return group->barrier().ok(); }));
  ck_assert(!other_left);
  ck_assert(other[1]->barrier().ok());
  early.join();
}
END_TEST

START_TEST(abort_ends_the_process_with_status_and_sentence) {
  int ends[2];
  ck_assert(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    Groups groups = make_local_groups(2);
    groups[1]->abort(42, "because of the test");
  }
  ::close(ends[1]);
  char text[200] = "";
  ck_assert(::read(ends[0], text, sizeof text - 1) > 0);
  int status = 0;
  ck_assert_int_eq(::waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status));
  ck_assert_int_eq(WEXITSTATUS(status), 42);
  ck_assert_msg(std::strstr(text, "because of the test") != nullptr, "%s", text);
}
END_TEST

}  // namespace

int main() {
  return gimlet::tests::run_suite(
      "local group",
      {ranks_are_numbered, nobody_leaves_a_barrier_early, a_barrier_publishes,
       allgather_brings_all_in_order, map_peers_gives_the_memory_of_each,
       a_rank_that_leaves_ends_the_waits, leaving_after_the_last_barrier_is_no_loss,
       groups_do_not_meet_each_other, abort_ends_the_process_with_status_and_sentence});
}
