// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/segment/offset_allocator.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "random.h"
#include "suite.h"

namespace {

using gimlet::pgas::OffsetAllocator;
using gimlet::tests::draw;
using gimlet::tests::seeded_generator;

constexpr std::uint64_t kGranule = OffsetAllocator::kGranule;

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

/// The rule in its simplest form: look at every gap between taken ranges, take the smallest that
/// fits, the lowest of equals.
class Model {
 public:
  explicit Model(std::uint64_t size) : size_(size / kGranule * kGranule) {}

  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment) {
    const std::uint64_t wanted = round_up(bytes, kGranule);
    std::optional<std::uint64_t> best;
    std::uint64_t best_gap = 0;
    for_each_gap([&](std::uint64_t start, std::uint64_t end) {
      const std::uint64_t place = round_up(start, std::max(alignment, kGranule));
      if (place > end || end - place < wanted) return;
      if (best && end - start >= best_gap) return;
      best = place;
      best_gap = end - start;
    });
    if (best) taken_[*best] = wanted;
    return best;
  }
  void release(std::uint64_t offset) { taken_.erase(offset); }

  std::uint64_t largest_free() const {
    std::uint64_t largest = 0;
    for_each_gap(
        [&](std::uint64_t start, std::uint64_t end) { largest = std::max(largest, end - start); });
    return largest;
  }
  std::uint64_t used() const {
    std::uint64_t sum = 0;
    for (const auto& [offset, size] : taken_) sum += size;
    return sum;
  }
  const std::map<std::uint64_t, std::uint64_t>& taken() const { return taken_; }

 private:
  template <class Visit>
  void for_each_gap(Visit visit) const {
    std::uint64_t start = 0;
    for (const auto& [offset, size] : taken_) {
      if (offset > start) visit(start, offset);
      start = offset + size;
    }
    if (size_ > start) visit(start, size_);
  }

  std::uint64_t size_;
  std::map<std::uint64_t, std::uint64_t> taken_;
};

void check_no_overlap(const std::map<std::uint64_t, std::uint64_t>& taken, std::uint64_t size) {
  std::uint64_t end = 0;
  for (const auto& [offset, bytes] : taken) {
    ck_assert_msg(offset >= end, "block at %llu starts before %llu",
                  static_cast<unsigned long long>(offset), static_cast<unsigned long long>(end));
    end = offset + bytes;
  }
  ck_assert_uint_le(end, size);
}

std::uint64_t some_size(std::mt19937_64& generator, std::uint64_t space) {
  switch (draw(generator, 0, 3)) {
    case 0:
      return draw(generator, 1, 3 * kGranule);
    case 1:
      return draw(generator, 1, space / 64 + 1);
    case 2:
      return kGranule * draw(generator, 1, 16);
    default:
      return draw(generator, 1, space / 4 + 1);
  }
}

std::uint64_t some_alignment(std::mt19937_64& generator, unsigned largest_bit) {
  if (draw(generator, 0, 1) == 0) return kGranule;
  return std::uint64_t{1} << draw(generator, 0, largest_bit);
}

START_TEST(random_calls_follow_the_model) {
  std::mt19937_64 generator = seeded_generator("random_calls_follow_the_model");
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t space = draw(generator, 1, std::uint64_t{1} << draw(generator, 8, 24));
    OffsetAllocator allocator(space);
    OffsetAllocator twin(space);
    Model model(space);
    std::vector<std::uint64_t> live;
    for (int step = 0; step < 400; ++step) {
      if (!live.empty() && draw(generator, 0, 99) < 45) {
        const auto pick = static_cast<std::size_t>(draw(generator, 0, live.size() - 1));
        ck_assert(allocator.release(live[pick]));
        ck_assert(twin.release(live[pick]));
        model.release(live[pick]);
        live[pick] = live.back();
        live.pop_back();
      } else {
        const std::uint64_t bytes = some_size(generator, space);
        const std::uint64_t alignment = some_alignment(generator, 22);
        const auto offset = allocator.allocate(bytes, alignment);
        const auto expected = model.allocate(bytes, alignment);
        ck_assert_msg(offset == expected, "%llu bytes aligned to %llu: %lld, not %lld",
                      static_cast<unsigned long long>(bytes),
                      static_cast<unsigned long long>(alignment),
                      offset ? static_cast<long long>(*offset) : -1,
                      expected ? static_cast<long long>(*expected) : -1);
        ck_assert(twin.allocate(bytes, alignment) == offset);
        if (offset) {
          ck_assert_uint_eq(*offset % alignment, 0);
          ck_assert_uint_ge(allocator.size_of(*offset), bytes);
          live.push_back(*offset);
        }
      }
      check_no_overlap(model.taken(), space);
      ck_assert_uint_eq(allocator.used(), model.used());
      ck_assert_uint_eq(allocator.largest_free(), model.largest_free());
      ck_assert_uint_eq(allocator.allocations(), live.size());
    }
    for (const std::uint64_t offset : live) ck_assert(allocator.release(offset));
    ck_assert_uint_eq(allocator.largest_free(), space / kGranule * kGranule);
  }
}
END_TEST

START_TEST(neighbours_coalesce_in_every_order) {
  const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    OffsetAllocator allocator(3 * kGranule);
    for (std::uint64_t i = 0; i < 3; ++i)
      ck_assert(allocator.allocate(kGranule, 1) == i * kGranule);
    ck_assert_uint_eq(allocator.largest_free(), 0);
    for (const int block : order)
      ck_assert(allocator.release(static_cast<std::uint64_t>(block) * kGranule));
    ck_assert(allocator.allocate(3 * kGranule, 1) == 0u);
  }
}
END_TEST

START_TEST(smallest_gap_wins_and_lowest_of_equals) {
  OffsetAllocator allocator(64 * kGranule);
  std::vector<std::uint64_t> blocks;
  for (const std::uint64_t granules : {4u, 1u, 2u, 1u, 3u, 1u, 2u, 1u}) {
    blocks.push_back(*allocator.allocate(granules * kGranule, 1));
  }
  for (const std::size_t freed : {0u, 2u, 4u, 6u}) ck_assert(allocator.release(blocks[freed]));
  ck_assert(allocator.allocate(2 * kGranule, 1) == blocks[2]);  // two gaps of 2: the lower one
  ck_assert(allocator.allocate(2 * kGranule, 1) == blocks[6]);
  ck_assert(allocator.allocate(2 * kGranule, 1) == blocks[4]);  // 3 is smaller than 4
  ck_assert(allocator.allocate(kGranule, 1) == blocks[4] + 2 * kGranule);
  ck_assert(allocator.allocate(kGranule, 1) == blocks[0]);
}
END_TEST

START_TEST(alignments_up_to_the_space) {
  constexpr std::uint64_t kSpace = std::uint64_t{1} << 40;
  for (unsigned bit = 0; bit < 40; ++bit) {
    OffsetAllocator allocator(kSpace);
    ck_assert(allocator.allocate(1, 1) == 0u);  // so that 0 is not the answer
    const auto offset = allocator.allocate(100, std::uint64_t{1} << bit);
    ck_assert(offset.has_value());
    ck_assert_uint_eq(*offset, std::max(std::uint64_t{1} << bit, kGranule));
    // The gap in front of an aligned block is not lost.
    if (bit > 6 && bit < 39) ck_assert(allocator.allocate(1, 1) == kGranule);
  }
  OffsetAllocator allocator(kSpace);
  ck_assert(allocator.allocate(1, 1) == 0u);
  ck_assert(!allocator.allocate(1, kSpace).has_value());
}
END_TEST

START_TEST(exhaustion_gives_nothing_and_changes_nothing) {
  OffsetAllocator allocator(10 * kGranule + 17);  // the tail below a granule is not handed out
  ck_assert_uint_eq(allocator.largest_free(), 10 * kGranule);
  ck_assert(!allocator.allocate(10 * kGranule + 1, 1).has_value());
  ck_assert(!allocator.allocate(UINT64_MAX, 1).has_value());
  ck_assert(!allocator.allocate(0, 1).has_value());
  for (int i = 0; i < 10; ++i) ck_assert(allocator.allocate(1, 1).has_value());
  ck_assert(!allocator.allocate(1, 1).has_value());
  ck_assert_uint_eq(allocator.used(), 10 * kGranule);
  ck_assert(allocator.release(4 * kGranule));
  ck_assert(!allocator.allocate(kGranule + 1, 1).has_value());
  ck_assert(allocator.allocate(kGranule, 1) == 4 * kGranule);

  OffsetAllocator empty(kGranule - 1);
  ck_assert_uint_eq(empty.largest_free(), 0);
  ck_assert(!empty.allocate(1, 1).has_value());
}
END_TEST

START_TEST(only_allocations_can_be_released) {
  OffsetAllocator allocator(8 * kGranule);
  const std::uint64_t block = *allocator.allocate(2 * kGranule, 1);
  ck_assert(!allocator.release(block + kGranule));
  ck_assert(!allocator.release(block + 1));
  ck_assert(!allocator.release(7 * kGranule));
  ck_assert(!allocator.release(UINT64_MAX));
  ck_assert_uint_eq(allocator.size_of(block + kGranule), 0);
  ck_assert_uint_eq(allocator.size_of(block), 2 * kGranule);
  ck_assert(allocator.release(block));
  ck_assert(!allocator.release(block));
}
END_TEST

}  // namespace

int main() {
  return gimlet::tests::run_suite(
      "offset allocator",
      {random_calls_follow_the_model, neighbours_coalesce_in_every_order,
       smallest_gap_wins_and_lowest_of_equals, alignments_up_to_the_space,
       exhaustion_gives_nothing_and_changes_nothing, only_allocations_can_be_released});
}
