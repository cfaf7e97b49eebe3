// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "device/log.h"
#include "pgas/group.h"
#include "pgas/transport/local_carrier.h"

namespace gimlet::pgas {
namespace {

/// What the ranks of one process share: where they meet, and what each brought along.
class Meeting {
 public:
  explicit Meeting(int ranks)
      : ranks_(ranks),
        bytes_(static_cast<std::size_t>(ranks)),
        memory_(static_cast<std::size_t>(ranks)),
        offers_(static_cast<std::size_t>(ranks)) {}

  int ranks() const { return ranks_; }

  /// Returns when all ranks are here; fails when one has left for good.
  Status meet() {
    std::unique_lock lock(mutex_);
    if (left_ >= 0) return has_left();
    const unsigned round = round_;
    if (++arrived_ == ranks_) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
      return {};
    }
    changed_.wait(lock, [&] { return round_ != round || left_ >= 0; });
    return round_ != round ? Status() : has_left();
  }

  void leave(int rank) {
    const std::scoped_lock lock(mutex_);
    if (left_ < 0) left_ = rank;
    changed_.notify_all();
  }

  // Written by their rank before a meet(), read by all after it.
  std::span<const std::byte>& bytes_of(int rank) { return bytes_[static_cast<std::size_t>(rank)]; }
  const device::Memory*& memory_of(int rank) { return memory_[static_cast<std::size_t>(rank)]; }
  LocalCarrier::Ranks& offers() { return offers_; }

 private:
  Status has_left() const {
    return fail(Code::kRemote, "rank {} has left the group while others still use it", left_);
  }

  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  unsigned round_ = 0;
  int left_ = -1;
  std::vector<std::span<const std::byte>> bytes_;
  std::vector<const device::Memory*> memory_;
  LocalCarrier::Ranks offers_;
};

class LocalGroup final : public Group {
 public:
  LocalGroup(std::shared_ptr<Meeting> meeting, int rank)
      : meeting_(std::move(meeting)), rank_(rank), carrier_(meeting_->offers(), rank) {}
  ~LocalGroup() override { meeting_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return meeting_->ranks(); }
  int world_pe(int rank) const override { return rank; }
  bool is_mappable(int, std::string*) const override { return true; }
  Status barrier() override { return meeting_->meet(); }

  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    meeting_->bytes_of(rank_) = mine;
    GIMLET_TRY(meeting_->meet());
    for (int r = 0; r < size(); ++r) {
      std::ranges::copy(
          meeting_->bytes_of(r),
          all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * mine.size()));
    }
    return meeting_->meet();  // the others' bytes are not used after it
  }

  Status map_peers(const device::Memory* mine, PeerMemory& peers) override {
    const auto ranks = static_cast<std::size_t>(size());
    peers.base.assign(ranks, nullptr);
    peers.size.assign(ranks, 0);
    peers.imported.clear();
    meeting_->memory_of(rank_) = mine;
    GIMLET_TRY(meeting_->meet());
    for (std::size_t r = 0; r < ranks; ++r) {
      const device::Memory* memory = meeting_->memory_of(static_cast<int>(r));
      if (memory == nullptr) continue;
      peers.base[r] = memory->base();
      peers.size[r] = memory->size();
    }
    return meeting_->meet();
  }

  Carrier* carrier(Status&) override { return &carrier_; }

  /// A thread dies only with its process; one that has left had no more to do.
  int dead_rank() const override { return -1; }
  [[noreturn]] void abort(int status, const std::string& why) override {
    log::error("{}", why);
    ::_exit(status);
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  int rank_;
  LocalCarrier carrier_;
};

}  // namespace

std::vector<std::unique_ptr<Group>> make_local_groups(int ranks) {
  auto meeting = std::make_shared<Meeting>(ranks);
  std::vector<std::unique_ptr<Group>> groups;
  for (int rank = 0; rank < ranks; ++rank) {
    groups.push_back(std::make_unique<LocalGroup>(meeting, rank));
  }
  return groups;
}

}  // namespace gimlet::pgas
