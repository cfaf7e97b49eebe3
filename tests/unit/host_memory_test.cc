// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "child.h"
#include "device/memory_kind.h"
#include "suite.h"

namespace {

using gimlet::Code;
using gimlet::Status;
using gimlet::UniqueFd;
using gimlet::device::host_memory;
using gimlet::device::Memory;
using gimlet::tests::ended_well;
using gimlet::tests::in_child;

constexpr std::size_t kMi = std::size_t{1} << 20;

std::unique_ptr<Memory> allocate(std::size_t bytes) {
  std::unique_ptr<Memory> memory;
  const Status status = host_memory().allocate(bytes, "test", memory);
  ck_assert_msg(status.ok(), "%s", status.message().c_str());
  return memory;
}

UniqueFd export_of(const Memory& memory) {
  UniqueFd fd;
  ck_assert(memory.export_fd(fd).ok());
  return fd;
}

std::unique_ptr<Memory> import(UniqueFd fd, std::size_t bytes) {
  std::unique_ptr<Memory> memory;
  const Status status = host_memory().import(std::move(fd), bytes, memory);
  ck_assert_msg(status.ok(), "%s", status.message().c_str());
  return memory;
}

/// True when an access there ends the process by SIGSEGV.
bool is_unmapped(const std::byte* place) {
  return !ended_well(in_child([place] {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(SIGSEGV, SIG_DFL);
    [[maybe_unused]] const volatile std::byte read = *place;
    return true;
  }));
}

START_TEST(memory_is_zero_and_of_whole_pages) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{4097}, 3 * kMi + 1}) {
    const auto memory = allocate(bytes);
    ck_assert_uint_ge(memory->size(), bytes);
    ck_assert_uint_ge(memory->size(), 1);
    ck_assert_uint_eq(memory->size() % 4096, 0);
    ck_assert_uint_lt(memory->size() - bytes, 4097);
    for (std::size_t i = 0; i < memory->size(); ++i) ck_assert(memory->base()[i] == std::byte{0});
    std::memset(memory->base(), 0x5a, memory->size());
  }
}
END_TEST

START_TEST(base_is_aligned_to_the_largest_power_of_two_in_the_size) {
  for (unsigned bit = 12; bit <= 32; ++bit) {
    const std::size_t power = std::size_t{1} << bit;
    const std::size_t promised = std::min(power, std::size_t{1} << 30);
    for (const std::size_t bytes : {power, power + 4096, 2 * power - 4096}) {
      const auto memory = allocate(bytes);
      ck_assert_uint_eq(reinterpret_cast<std::uintptr_t>(memory->base()) % promised, 0);
      const auto peer = import(export_of(*memory), memory->size());
      ck_assert_uint_eq(reinterpret_cast<std::uintptr_t>(peer->base()) % promised, 0);
    }
  }
}
END_TEST

START_TEST(mappings_share_the_bytes) {
  const auto memory = allocate(2 * kMi);
  const auto peer = import(export_of(*memory), memory->size());
  ck_assert(peer->base() != memory->base());
  ck_assert_uint_eq(peer->size(), memory->size());
  memory->base()[0] = std::byte{1};
  memory->base()[memory->size() - 1] = std::byte{2};
  ck_assert(peer->base()[0] == std::byte{1});
  ck_assert(peer->base()[peer->size() - 1] == std::byte{2});
  peer->base()[kMi] = std::byte{3};
  ck_assert(memory->base()[kMi] == std::byte{3});
}
END_TEST

START_TEST(another_process_shares_the_bytes) {
  const auto memory = allocate(kMi);
  const UniqueFd fd = export_of(*memory);
  const pid_t child = in_child([&] {
    UniqueFd own(::dup(fd.get()));
    std::unique_ptr<Memory> peer;
    if (!host_memory().import(std::move(own), kMi, peer).ok()) return false;
    peer->base()[12345] = std::byte{77};
    return true;
  });
  ck_assert(ended_well(child));
  ck_assert(memory->base()[12345] == std::byte{77});
}
END_TEST

START_TEST(bytes_outlive_the_allocation_while_a_peer_maps_them) {
  auto memory = allocate(kMi);
  memory->base()[7] = std::byte{9};
  const auto peer = import(export_of(*memory), memory->size());
  memory.reset();
  ck_assert(peer->base()[7] == std::byte{9});
}
END_TEST

START_TEST(the_destructor_unmaps) {
  auto memory = allocate(kMi);
  const std::byte* base = memory->base();
  ck_assert(!is_unmapped(base) && !is_unmapped(base + kMi - 1));
  memory.reset();
  ck_assert(is_unmapped(base) && is_unmapped(base + kMi - 1));
}
END_TEST

std::size_t mapped_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages;
  return pages * 4096;
}

/// What was reserved to find an aligned place is given back.
START_TEST(nothing_stays_mapped_around_the_memory) {
  constexpr std::size_t kPieces = 8;
  constexpr std::size_t kBytes = 16 * kMi;
  std::vector<std::unique_ptr<Memory>> pieces;
  const std::size_t before = mapped_bytes();
  for (std::size_t i = 0; i < kPieces; i += 2) {
    pieces.push_back(allocate(kBytes));
    pieces.push_back(import(export_of(*pieces.back()), kBytes));
  }
  const std::size_t grown = mapped_bytes() - before;
  ck_assert_uint_ge(grown, kPieces * kBytes);
  ck_assert_uint_lt(grown, kPieces * kBytes + 4 * kMi);
}
END_TEST

START_TEST(an_announcement_that_is_too_large_is_refused) {
  const auto memory = allocate(kMi);
  for (const std::size_t bytes : {kMi + 1, 2 * kMi, std::size_t{1} << 40}) {
    std::unique_ptr<Memory> peer;
    const Status status = host_memory().import(export_of(*memory), bytes, peer);
    ck_assert(status.code() == Code::kRemote);
    ck_assert_msg(status.message().find("1048576") != std::string::npos, "%s",
                  status.message().c_str());
    ck_assert(peer == nullptr);
  }
  // Less than all of it is a mapping of that part.
  ck_assert_uint_eq(import(export_of(*memory), kMi / 2)->size(), kMi / 2);
}
END_TEST

START_TEST(what_is_no_memory_descriptor_is_refused) {
  std::unique_ptr<Memory> peer;
  ck_assert(!host_memory().import(UniqueFd(), kMi, peer).ok());
  int ends[2];
  ck_assert(::pipe(ends) == 0);
  ck_assert(!host_memory().import(UniqueFd(ends[0]), 4096, peer).ok());
  ::close(ends[1]);
  ck_assert(peer == nullptr);
}
END_TEST

/// A peer that shrinks the file would turn loads into SIGBUS.
START_TEST(nobody_can_change_the_size) {
  const auto memory = allocate(kMi);
  const UniqueFd fd = export_of(*memory);
  ck_assert_int_ne(::ftruncate(fd.get(), 4096), 0);
  ck_assert_int_ne(::ftruncate(fd.get(), static_cast<off_t>(2 * kMi)), 0);
  ck_assert((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
}
END_TEST

/// Not by SIGXFSZ, which Check would report as a killed test.
START_TEST(the_file_size_limit_gives_a_sentence) {
  const rlimit limit{8 * kMi, 8 * kMi};
  ck_assert(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  std::unique_ptr<Memory> memory;
  const Status status = host_memory().allocate(8 * kMi + 1, "the heap", memory);
  ck_assert(status.code() == Code::kNoMemory);
  for (const char* word : {"the heap", "8392704", "ulimit -f", "8388608"}) {
    ck_assert_msg(status.message().find(word) != std::string::npos, "no %s in: %s", word,
                  status.message().c_str());
  }
  const auto fits = allocate(8 * kMi);
  std::memset(fits->base(), 1, fits->size());
}
END_TEST

START_TEST(too_many_addresses_give_a_sentence) {
  std::unique_ptr<Memory> memory;
  const Status status = host_memory().allocate(std::size_t{1} << 55, "the heap", memory);
  ck_assert(!status.ok());
  ck_assert(memory == nullptr);
  ck_assert_msg(status.message().find("bytes") != std::string::npos, "%s",
                status.message().c_str());
}
END_TEST

START_TEST(no_descriptors_left_gives_a_sentence) {
#ifdef __SANITIZE_ADDRESS__
  // The sanitizers look at memory through descriptors of their own.
  puts("no_descriptors_left_gives_a_sentence: left out, the sanitizers need descriptors");
  return;
#endif
  const rlimit limit{3, 3};
  ck_assert(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  std::unique_ptr<Memory> memory;
  const Status status = host_memory().allocate(kMi, "the heap", memory);
  ck_assert(status.code() == Code::kSystem);
  ck_assert_msg(status.message().find("Too many open files") != std::string::npos, "%s",
                status.message().c_str());
}
END_TEST

START_TEST(copy_copies) {
  const auto memory = allocate(kMi);
  const char text[] = "some bytes";
  host_memory().copy(memory->base() + 100, text, sizeof text);
  char back[sizeof text] = "";
  host_memory().copy(back, memory->base() + 100, sizeof text);
  ck_assert_str_eq(back, text);
  host_memory().copy(nullptr, nullptr, 0);
}
END_TEST

}  // namespace

int main() {
  return gimlet::tests::run_suite(
      "host memory",
      {memory_is_zero_and_of_whole_pages, base_is_aligned_to_the_largest_power_of_two_in_the_size,
       mappings_share_the_bytes, another_process_shares_the_bytes,
       bytes_outlive_the_allocation_while_a_peer_maps_them, the_destructor_unmaps,
       nothing_stays_mapped_around_the_memory, an_announcement_that_is_too_large_is_refused,
       what_is_no_memory_descriptor_is_refused, nobody_can_change_the_size,
       the_file_size_limit_gives_a_sentence, too_many_addresses_give_a_sentence,
       no_descriptors_left_gives_a_sentence, copy_copies});
}
