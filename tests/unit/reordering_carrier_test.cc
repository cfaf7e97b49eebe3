// SPDX-License-Identifier: BSD-3-Clause
// What GIN_REORDER may do to requests, and what it must not.
#include "gin/path/proxy/reordering_carrier.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "random.h"

// After the headers above, whose name `fail` it takes.
#include "suite.h"
#undef fail

namespace {

using gimlet::Status;
using gimlet::gin::ReorderingCarrier;
using gimlet::pgas::CarriedRequest;
using gimlet::tests::draw;
using gimlet::tests::seeded_generator;
using Kind = CarriedRequest::Kind;

constexpr int kRanks = 3;
constexpr unsigned kLanes = 2;

/// A request and its history.
struct Posted {
  CarriedRequest carried;  // first: a carrier hands this back
  std::uint64_t number = 0;
  std::array<std::uint64_t, 4> source{};
  int completions = 0;
};

/// Notes what reaches it, completes some at once and some later, and has no room now and then.
class Target final : public gimlet::pgas::Carrier {
 public:
  explicit Target(std::mt19937_64* generator) : generator_(generator) {}

  Status add_segment(std::byte*, std::size_t, std::uint16_t&) override { return {}; }
  Status add_staged_segment(std::byte*, std::size_t, const gimlet::device::MemoryKind&,
                            std::uint16_t&) override {
    return {};
  }
  void remove_segment(std::uint16_t) override {}
  Status add_listener(Listener, std::uint32_t&) override { return {}; }
  void remove_listener(std::uint32_t) override {}
  bool post(CarriedRequest& request) override {
    int& refused = refused_[request.rank];
    if (refused != 0 && refused != number_of(request)) ck_abort_msg("a request passed another");
    refused = 0;
    if (generator_ != nullptr && draw(*generator_, 0, 3) == 0) {
      refused = number_of(request);
      return false;
    }
    order.push_back(number_of(request));
    if (request.kind == Kind::kPut && request.bytes != 0)
      std::memcpy(&arrived[order.back()], request.local, sizeof(std::uint64_t));
    if (generator_ != nullptr && draw(*generator_, 0, 1) == 0) {
      later_.push_back(&request);
    } else {
      request.completed(request, {});
    }
    return true;
  }
  bool post_note(int, std::uint32_t, std::span<const std::byte>) override { return true; }
  bool progress() override {
    if (later_.empty()) return false;
    later_.front()->completed(*later_.front(), {});
    later_.pop_front();
    return true;
  }

  std::vector<int> order;
  std::map<int, std::uint64_t> arrived;

 private:
  static int number_of(const CarriedRequest& request) { return static_cast<int>(request.operand); }

  std::mt19937_64* const generator_;  // null: it always has room and completes at once
  std::map<int, int> refused_;
  std::deque<CarriedRequest*> later_;
};

constexpr std::uint64_t kOld = 1;
constexpr std::uint64_t kNew = 2;

void completed(CarriedRequest& carried, Status status) {
  auto& posted = reinterpret_cast<Posted&>(carried);
  ck_assert(status.ok());
  ++posted.completions;
  posted.source.fill(kOld);  // as its owner may, from now on
}

/// Any request; `number` from 1 on.
std::unique_ptr<Posted> make_request(std::mt19937_64& generator, std::uint64_t number) {
  auto posted = std::make_unique<Posted>();
  CarriedRequest& carried = posted->carried;
  constexpr Kind kKinds[] = {Kind::kPut, Kind::kPut, Kind::kPut,
                             Kind::kGet, Kind::kAmo, Kind::kDrain};
  carried.kind = kKinds[draw(generator, 0, 5)];
  carried.rank = static_cast<int>(draw(generator, 0, kRanks - 1));
  carried.lane = static_cast<std::uint32_t>(draw(generator, 0, kLanes - 1));
  carried.operand = number;
  carried.local = posted->source.data();
  const bool is_put = carried.kind == Kind::kPut;
  carried.bytes = is_put && draw(generator, 0, 3) == 0 ? 0 : sizeof posted->source;
  carried.signal.present = is_put && draw(generator, 0, 1) == 0;
  carried.signal.strong = carried.signal.present && draw(generator, 0, 1) == 0;
  carried.completed = completed;
  posted->number = number;
  posted->source.fill(kOld);
  return posted;
}

using Requests = std::vector<std::unique_ptr<Posted>>;

/// Posts a burst, and then moves the carrier until it is empty.
void carry_all(ReorderingCarrier& carrier, const Requests& requests) {
  for (const auto& posted : requests) {
    ck_assert(carrier.post(posted->carried));
    posted->source.fill(kNew);  // a source that was read too early is seen
  }
  while (!carrier.is_empty()) carrier.progress();
}

/// Must `later` come behind `earlier`, which was posted before it?
bool is_ordered(const CarriedRequest& earlier, const CarriedRequest& later) {
  if (earlier.rank != later.rank || earlier.lane != later.lane) return false;
  if (later.kind == Kind::kDrain) return true;
  const bool is_covered =
      earlier.kind == Kind::kAmo || (earlier.kind == Kind::kPut && earlier.bytes != 0);
  return later.signal.strong && is_covered;
}

START_TEST(promised_order_is_kept_and_no_other) {
  std::mt19937_64 generator = seeded_generator("promised_order_is_kept_and_no_other");
  std::size_t overtaken[2] = {};  // in the same lane, and elsewhere
  for (unsigned round = 0; round < 30; ++round) {
    auto target = std::make_unique<Target>(&generator);
    const Target& seen = *target;
    ReorderingCarrier carrier(std::move(target), draw(generator, 1, 1000), 0);
    Requests requests;
    for (std::uint64_t i = 1; i <= 150; ++i) requests.push_back(make_request(generator, i));
    carry_all(carrier, requests);
    ck_assert_uint_eq(seen.order.size(), requests.size());
    std::vector<std::size_t> place(requests.size() + 1);
    for (std::size_t i = 0; i < seen.order.size(); ++i)
      place[static_cast<std::size_t>(seen.order[i])] = i;
    for (const auto& later : requests) {
      ck_assert_int_eq(later->completions, 1);
      for (const auto& earlier : requests) {
        if (earlier->number >= later->number || place[earlier->number] < place[later->number])
          continue;
        ck_assert_msg(!is_ordered(earlier->carried, later->carried), "request %llu passed %llu",
                      static_cast<unsigned long long>(later->number),
                      static_cast<unsigned long long>(earlier->number));
        const bool same_lane = earlier->carried.rank == later->carried.rank &&
                               earlier->carried.lane == later->carried.lane;
        ++overtaken[same_lane ? 0 : 1];
      }
    }
  }
  ck_assert_uint_gt(overtaken[0], 100);
  ck_assert_uint_gt(overtaken[1], 100);
}
END_TEST

START_TEST(sources_are_read_late_and_not_after_the_completion) {
  std::mt19937_64 generator = seeded_generator("sources_are_read_late");
  for (unsigned round = 0; round < 10; ++round) {
    auto target = std::make_unique<Target>(&generator);
    const Target& seen = *target;
    ReorderingCarrier carrier(std::move(target), draw(generator, 1, 1000), 0);
    Requests requests;
    for (std::uint64_t i = 1; i <= 100; ++i) requests.push_back(make_request(generator, i));
    carry_all(carrier, requests);
    for (const auto& [number, value] : seen.arrived) ck_assert_uint_eq(value, kNew);
  }
}
END_TEST

START_TEST(a_seed_gives_one_order) {
  const auto order_of = [](std::uint64_t seed, int rank) {
    std::mt19937_64 generator(7);
    auto target = std::make_unique<Target>(nullptr);
    const Target& seen = *target;
    ReorderingCarrier carrier(std::move(target), seed, rank);
    Requests requests;
    for (std::uint64_t i = 1; i <= 100; ++i) requests.push_back(make_request(generator, i));
    carry_all(carrier, requests);
    return seen.order;
  };
  const std::vector<int> order = order_of(1, 0);
  ck_assert(order == order_of(1, 0));
  ck_assert(order != order_of(2, 0));
  ck_assert(order != order_of(1, 1));
}
END_TEST

}  // namespace

int main() {
  return gimlet::tests::run_suite(
      "reordering carrier",
      {promised_order_is_kept_and_no_other, sources_are_read_late_and_not_after_the_completion,
       a_seed_gives_one_order});
}
