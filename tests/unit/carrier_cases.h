// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_UNIT_CARRIER_CASES_H
#define GIMLET_TESTS_UNIT_CARRIER_CASES_H

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "device/guarded_memory.h"
#include "pgas/transport/carrier.h"

/// What every carrier promises, as one body for all of them. `Pe` is one rank of two: rank, size,
/// memory (zeroes, kCarrierBytes), carrier(), barrier(), await(condition), share(value) -> values
/// by rank, kind: with one, everything that is offered, read by a put or written by a get is at
/// guarded addresses of that kind. EXPECT and EXPECT_OK end the rank.
namespace gimlet::pgas::testing {

inline constexpr std::size_t kCarrierBytes = std::size_t{4} << 20;
/// Signals and words stand here, above all payloads.
inline constexpr std::uint64_t kWordsAt = kCarrierBytes - 4096;

/// Counts how often it is completed.
struct Counted : CarriedRequest {
  Counted() { completed = &Counted::count; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  static void count(CarriedRequest& request, Status how) {
    auto& self = static_cast<Counted&>(request);
    self.status = std::move(how);
    self.completions.fetch_add(1, std::memory_order_release);
  }
  bool is_over() const { return completions.load(std::memory_order_acquire) != 0; }

  std::atomic<int> completions{0};
  Status status;
  std::unique_ptr<device::GuardedRange> guard;  // of `local`
};

/// Memory that all ranks offer, and a listener that notes what it hears.
template <class Pe>
struct Offered {
  explicit Offered(Pe& of) : pe(of) {
    EXPECT_OK(add(pe.memory, kCarrierBytes, own));
    Carrier::Listener hears;
    hears.refused = [this](const Refusal& refusal) {
      last = refusal;
      if (refusals.load(std::memory_order_relaxed) == 0) first = refusal;
      refusals.fetch_add(1, std::memory_order_release);
    };
    hears.noted = [this](int rank, std::span<const std::byte> note) {
      noted_by = rank;
      noted_bytes = note.size();
      if (!note.empty()) noted_first = note.front();
      notes.fetch_add(1, std::memory_order_release);
    };
    EXPECT_OK(pe.carrier().add_listener(std::move(hears), listener));
    segments = pe.share(own);
    listeners = pe.share(listener);
  }
  ~Offered() {
    pe.barrier();
    pe.carrier().remove_listener(listener);
    pe.carrier().remove_segment(own);
  }
  Offered(const Offered&) = delete;
  Offered& operator=(const Offered&) = delete;

  /// Offers a piece of memory in the way that all of them are offered.
  Status add(std::byte* base, std::size_t bytes, SegmentNumber& number) {
    if (pe.kind == nullptr) return pe.carrier().add_segment(base, bytes, number);
    GIMLET_TRY(device::GuardedRange::make(base, bytes, guards.emplace_back()));
    return pe.carrier().add_staged_segment(guards.back()->base(), bytes, *pe.kind, number);
  }
  void aim(Counted& request, CarriedRequest::Kind kind, int rank, std::uint64_t offset, void* local,
           std::uint64_t bytes) const {
    request.kind = kind;
    request.rank = rank;
    request.segment = static_cast<SegmentNumber>(segments[static_cast<std::size_t>(rank)]);
    request.offset = offset;
    request.local = local;
    request.bytes = bytes;
    request.listener = listener;
    const bool moves = kind == CarriedRequest::Kind::kPut || kind == CarriedRequest::Kind::kGet;
    if (pe.kind == nullptr || !moves || bytes == 0) return;
    EXPECT_OK(device::GuardedRange::make(static_cast<std::byte*>(local), bytes, request.guard));
    request.local = request.guard->base();
    request.local_kind = pe.kind;
  }
  void raise(Counted& request, SignalOp op, std::uint64_t value, bool strong,
             std::uint64_t offset = kWordsAt) const {
    request.signal.present = true;
    request.signal.strong = strong;
    request.signal.segment =
        static_cast<SegmentNumber>(segments[static_cast<std::size_t>(request.rank)]);
    request.signal.op = op;
    request.signal.offset = offset;
    request.signal.value = value;
  }
  void post(Counted& request) const {
    pe.await([&] { return pe.carrier().post(request); });
  }
  void finish(Counted& request) const {
    post(request);
    pe.await([&] { return request.is_over(); });
    EXPECT_OK(std::move(request.status));
    EXPECT(request.completions.load() == 1);
  }
  void drain(int rank) const {
    Counted request;
    aim(request, CarriedRequest::Kind::kDrain, rank, 0, nullptr, 0);
    finish(request);
  }
  std::atomic_ref<std::uint64_t> word(std::uint64_t offset = kWordsAt) const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(pe.memory + offset));
  }

  Pe& pe;
  SegmentNumber own = 0;
  ListenerNumber listener = 0;
  std::vector<std::uint64_t> segments;
  std::vector<std::uint64_t> listeners;
  std::atomic<int> refusals{0};
  Refusal first, last;
  std::atomic<int> notes{0};
  int noted_by = -1;
  std::size_t noted_bytes = 0;
  std::byte noted_first{};
  std::vector<std::unique_ptr<device::GuardedRange>> guards;
};

inline std::byte carried_byte(std::size_t i, unsigned seed) {
  return static_cast<std::byte>((i * 29 + i / 253 + seed * 83) & 0xff);
}
inline void fill_carried(std::byte* place, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i) place[i] = carried_byte(i, seed);
}
inline bool holds_carried(const std::byte* place, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (place[i] != carried_byte(i, seed)) return false;
  return true;
}

inline constexpr std::size_t kCarriedSizes[] = {
    0,    1,    3,    4,    8,    28,   36,    37,    40,    44,    45,    64,      100,
    4096, 8000, 8143, 8144, 8145, 8192, 16288, 16289, 20000, 65536, 65537, 200'003, 1 << 20};

/// Every size, to the peer and to the rank itself, alone and with each kind of signal.
template <class Pe>
void carry_puts(Pe& pe) {
  Offered<Pe> offered(pe);
  std::vector<std::byte> mine(1 << 20);
  std::uint64_t value = 0;
  unsigned seed = 0;
  for (const bool to_self : {false, true}) {
    const int to = to_self ? pe.rank : pe.rank ^ 1;
    offered.word().store(0);
    value = 0;
    pe.barrier();
    for (const std::size_t bytes : kCarriedSizes) {
      for (int form = 0; form < 4; ++form) {
        fill_carried(mine.data(), bytes, ++seed);
        Counted put;
        offered.aim(put, CarriedRequest::Kind::kPut, to, 5, mine.data(), bytes);
        const bool adds = form % 2 == 0;
        value = form == 0 ? value : adds ? value + 3 : value + 100;
        if (form != 0)
          offered.raise(put, adds ? SignalOp::kAdd : SignalOp::kSet, adds ? 3 : value, form == 3);
        offered.finish(put);
        fill_carried(mine.data(), bytes, 255);  // the source may be reused
        if (form == 0) {
          offered.drain(to);
          pe.barrier();
        }
        // Acquire: the payload was stored before the signal.
        pe.await([&] { return offered.word().load(std::memory_order_acquire) == value; });
        EXPECT(holds_carried(pe.memory + 5, bytes, seed));
        pe.barrier();
      }
    }
  }
  EXPECT(offered.refusals.load() == 0);
}

template <class Pe>
void carry_gets(Pe& pe) {
  Offered<Pe> offered(pe);
  fill_carried(pe.memory, 1 << 20, static_cast<unsigned>(pe.rank));
  pe.barrier();
  std::vector<std::byte> back((1 << 20) + 1);
  for (const int from : {pe.rank ^ 1, pe.rank}) {
    for (const std::size_t bytes : kCarriedSizes) {
      back.assign(back.size(), std::byte{0x5a});
      Counted get;
      offered.aim(get, CarriedRequest::Kind::kGet, from, 0, back.data(), bytes);
      offered.finish(get);
      EXPECT(holds_carried(back.data(), bytes, static_cast<unsigned>(from)));
      EXPECT(back[bytes] == std::byte{0x5a});
    }
  }
  EXPECT(offered.refusals.load() == 0);
}

template <class Word, class Pe>
void carry_updates_of(Offered<Pe>& offered, int to, std::uint64_t offset) {
  Pe& pe = offered.pe;
  const auto update = [&](AmoOp op, std::uint64_t operand, std::uint64_t compare, Word* old) {
    Counted amo;
    offered.aim(amo, CarriedRequest::Kind::kAmo, to, offset, old, 0);
    amo.op = op;
    amo.width = sizeof(Word);
    amo.operand = operand;
    amo.compare = compare;
    offered.finish(amo);
  };
  const auto fetch = [&](AmoOp op, std::uint64_t operand, std::uint64_t compare = 0) {
    std::array<Word, 2> old = {0, 99};
    update(op, operand, compare, old.data());
    EXPECT(old[1] == 99);  // `width` bytes, not more
    return old[0];
  };
  const auto forget = [&](AmoOp op, std::uint64_t operand) { update(op, operand, 0, nullptr); };
  const Word big = static_cast<Word>(0xfedcba9876543210);
  EXPECT(fetch(AmoOp::kSet, big) == 0);
  EXPECT(fetch(AmoOp::kFetch, 7) == big);
  EXPECT(fetch(AmoOp::kSwap, 12) == big);
  EXPECT(fetch(AmoOp::kCompareSwap, 1, 13) == 12);
  EXPECT(fetch(AmoOp::kCompareSwap, 14, 12) == 12);
  EXPECT(fetch(AmoOp::kAdd, static_cast<std::uint64_t>(-4)) == 14);
  EXPECT(fetch(AmoOp::kAnd, 6) == 10);
  EXPECT(fetch(AmoOp::kOr, 9) == 2);
  EXPECT(fetch(AmoOp::kXor, 3) == 11);
  forget(AmoOp::kSet, 100);
  forget(AmoOp::kAdd, 11);
  forget(AmoOp::kXor, 1);
  EXPECT(fetch(AmoOp::kFetch, 0) == 110);
}

template <class Pe>
void carry_updates(Pe& pe) {
  Offered<Pe> offered(pe);
  const auto row = static_cast<std::uint64_t>(pe.rank) * 256;
  for (const int to : {pe.rank ^ 1, pe.rank}) {
    carry_updates_of<std::uint64_t>(offered, to, row + 64);
    carry_updates_of<std::uint32_t>(offered, to, row + 128);
  }
  pe.barrier();
  const auto* words = reinterpret_cast<const std::uint64_t*>(pe.memory);
  for (std::size_t i = 0; i < 64; ++i) EXPECT(words[i] == (i % 32 == 8 || i % 32 == 16 ? 110 : 0));
  EXPECT(offered.refusals.load() == 0);
}

/// Many requests at once, none of which waits for another; a drain behind all of them, and a strong
/// signal behind all that.
template <class Pe>
void carry_many(Pe& pe) {
  constexpr std::size_t kEach = 9000;
  constexpr std::size_t kCount = 150;
  Offered<Pe> offered(pe);
  const int peer = pe.rank ^ 1;
  std::vector<std::byte> mine(kCount * kEach), back(kCount * kEach);
  fill_carried(mine.data(), mine.size(), static_cast<unsigned>(pe.rank));
  std::deque<Counted> requests;
  for (std::size_t i = 0; i < kCount; ++i) {
    offered.aim(requests.emplace_back(), CarriedRequest::Kind::kPut, peer, i * kEach,
                mine.data() + i * kEach, kEach);
    offered.post(requests.back());
  }
  offered.aim(requests.emplace_back(), CarriedRequest::Kind::kDrain, peer, 0, nullptr, 0);
  offered.post(requests.back());
  for (std::size_t i = 0; i < kCount; ++i) {
    offered.aim(requests.emplace_back(), CarriedRequest::Kind::kGet, peer, i * kEach,
                back.data() + i * kEach, kEach);
    offered.post(requests.back());
  }
  offered.aim(requests.emplace_back(), CarriedRequest::Kind::kPut, peer, 0, nullptr, 0);
  offered.raise(requests.back(), SignalOp::kAdd, 1, true);
  offered.post(requests.back());
  pe.await([&] { return offered.word().load(std::memory_order_acquire) == 1; });
  EXPECT(holds_carried(pe.memory, mine.size(), static_cast<unsigned>(peer)));
  pe.await([&] {
    for (const Counted& request : requests)
      if (!request.is_over()) return false;
    return true;
  });
  for (Counted& request : requests) EXPECT_OK(std::move(request.status));
  EXPECT(back == mine);
  pe.barrier();
  for (const Counted& request : requests) EXPECT(request.completions.load() == 1);
}

inline constexpr std::size_t kPieceSizes[] = {0,       1,       8,       4095,   262'143,
                                              262'144, 262'145, 524'289, 3 << 20};

/// Sizes around the pieces in which memory that transports may not touch is moved, both ways at the
/// same time: a put with a strong signal behind a put without, a drain, and a get.
template <class Pe>
void carry_pieces(Pe& pe) {
  Offered<Pe> offered(pe);
  const int peer = pe.rank ^ 1;
  std::vector<std::byte> mine(3 << 20), back(3 << 20);
  std::uint64_t value = 0;
  for (const std::size_t bytes : kPieceSizes) {
    fill_carried(mine.data(), bytes, static_cast<unsigned>(bytes + 3));
    std::deque<Counted> requests;
    offered.aim(requests.emplace_back(), CarriedRequest::Kind::kPut, peer, 3, mine.data(), bytes);
    offered.post(requests.back());
    offered.aim(requests.emplace_back(), CarriedRequest::Kind::kPut, peer, 0, nullptr, 0);
    offered.raise(requests.back(), SignalOp::kSet, ++value, true);
    offered.post(requests.back());
    pe.await([&] { return offered.word().load(std::memory_order_acquire) == value; });
    EXPECT(holds_carried(pe.memory + 3, bytes, static_cast<unsigned>(bytes + 3)));
    offered.drain(peer);
    offered.aim(requests.emplace_back(), CarriedRequest::Kind::kGet, peer, 3, back.data(), bytes);
    offered.finish(requests.back());
    EXPECT(holds_carried(back.data(), bytes, static_cast<unsigned>(bytes + 3)));
    pe.await([&] { return requests[0].is_over() && requests[1].is_over(); });
    pe.barrier();
  }
  EXPECT(offered.refusals.load() == 0);
}

/// What the target refuses changes nothing there, and its poster's listener, and no other, hears it
/// with the right numbers.
template <class Pe>
void hear_refusals(Pe& pe) {
  Offered<Pe> offered(pe);
  ListenerNumber other = 0;
  std::atomic<int> others{0};
  EXPECT_OK(pe.carrier().add_listener({[&](const Refusal&) { ++others; }, {}}, other));
  std::vector<std::byte> mine(100'000, std::byte{7});
  std::uint64_t old = 77;
  constexpr auto kUnknown = static_cast<SegmentNumber>(60'000);
  constexpr auto kPut = CarriedRequest::Kind::kPut;
  constexpr auto kGet = CarriedRequest::Kind::kGet;
  constexpr auto kAmo = CarriedRequest::Kind::kAmo;
  for (const int to : {pe.rank ^ 1, pe.rank}) {
    const auto expect = [&](Counted& request, bool is_signal, std::uint64_t bytes,
                            std::uint64_t size) {
      offered.refusals.store(0);
      offered.finish(request);
      offered.drain(to);
      pe.await([&] { return offered.refusals.load(std::memory_order_acquire) != 0; });
      const Refusal& told = offered.first;
      EXPECT(told.rank == to && told.kind == request.kind && told.is_signal == is_signal);
      EXPECT(told.segment == (is_signal ? request.signal.segment : request.segment));
      EXPECT(told.offset == (is_signal ? request.signal.offset : request.offset));
      EXPECT(told.bytes == bytes && told.size == size);
    };
    const auto place = [&](CarriedRequest::Kind kind, std::uint64_t offset, std::uint64_t bytes,
                           bool known, bool signal) {
      Counted request;
      offered.aim(request, kind, to, offset, kind == kAmo && signal ? nullptr : mine.data(), bytes);
      if (kind == kAmo) request.local = signal ? nullptr : &old;
      if (kind == kPut && signal) offered.raise(request, SignalOp::kAdd, 1, false);
      if (!known) request.segment = kUnknown;
      expect(request, false, kind == kAmo ? 8 : bytes, known ? kCarrierBytes : 0);
    };
    for (const bool signal : {false, true}) {
      for (const auto kind : {kPut, kGet, kAmo}) {
        place(kind, kCarrierBytes, 8, true, signal);
        place(kind, ~std::uint64_t{0} - 7, 8, true, signal);
        place(kind, 0, 8, false, signal);
      }
      place(kPut, kCarrierBytes - 99'999, 100'000, true, signal);  // only the last byte is outside
      place(kPut, ~std::uint64_t{0} - 7, 100'000, true, signal);
      place(kAmo, 4, 8, true, signal);
    }
    for (const std::uint64_t bytes : {0u, 8u, 100'000u}) {
      for (const std::uint64_t at : {kWordsAt + 4, std::uint64_t{kCarrierBytes}}) {
        Counted put;
        offered.aim(put, kPut, to, 0, mine.data(), bytes);
        offered.raise(put, SignalOp::kAdd, 1, true, at);
        expect(put, true, 8, kCarrierBytes);
      }
      Counted put;
      offered.aim(put, kPut, to, 0, mine.data(), bytes);
      offered.raise(put, SignalOp::kAdd, 1, true);
      put.signal.segment = kUnknown;
      expect(put, true, 8, 0);
    }
    // Nobody is told when the poster names no listener of its own.
    offered.refusals.store(0);
    Counted unheard;
    offered.aim(unheard, kPut, to, kCarrierBytes, mine.data(), 8);
    unheard.listener = 50'000;
    offered.finish(unheard);
    offered.drain(to);
    pe.barrier();
    EXPECT(offered.refusals.load() == 0);
  }
  pe.barrier();
  EXPECT(others.load() == 0 && old == 77);
  for (std::size_t i = 0; i < kCarrierBytes; ++i) EXPECT(pe.memory[i] == std::byte{0});
  pe.carrier().remove_listener(other);
}

/// Segments come and go; a number is not given out again soon, and 0 bytes are a segment too.
template <class Pe>
void renumber_segments(Pe& pe) {
  Offered<Pe> offered(pe);
  std::array<std::uint64_t, 8> more{}, most{};
  const auto bytes_of = [](auto& words) { return reinterpret_cast<std::byte*>(words.data()); };
  SegmentNumber empty = 0, first = 0, second = 0;
  EXPECT_OK(offered.add(bytes_of(more), 0, empty));
  EXPECT_OK(offered.add(bytes_of(more), sizeof more, first));
  EXPECT(first != empty && empty != offered.own);
  pe.carrier().remove_segment(empty);
  const std::vector<std::uint64_t> firsts = pe.share(first);
  const int peer = pe.rank ^ 1;
  std::uint64_t value = 5;
  const auto put = [&](std::uint64_t segment) {
    Counted request;
    offered.aim(request, CarriedRequest::Kind::kPut, peer, 8, &value, 8);
    request.segment = static_cast<SegmentNumber>(segment);
    offered.finish(request);
    offered.drain(peer);
    pe.barrier();
  };
  put(firsts[static_cast<std::size_t>(peer)]);
  EXPECT(more[1] == 5 && offered.refusals.load() == 0);
  pe.carrier().remove_segment(first);
  EXPECT_OK(offered.add(bytes_of(most), sizeof most, second));
  EXPECT(second != first && second != empty);
  pe.barrier();
  value = 6;
  put(firsts[static_cast<std::size_t>(peer)]);
  pe.await([&] { return offered.refusals.load() == 1; });
  EXPECT(offered.first.size == 0);
  EXPECT(more[1] == 5 && most[1] == 0);
  put(pe.share(second)[static_cast<std::size_t>(peer)]);
  EXPECT(most[1] == 6);
  pe.carrier().remove_segment(second);
}

/// A note reaches the listener that it names, and nobody once that is gone, also not the next one.
template <class Pe>
void pass_notes(Pe& pe) {
  Offered<Pe> offered(pe);
  const int peer = pe.rank ^ 1;
  std::array<std::byte, Carrier::kNoteBytes> note;
  note.fill(static_cast<std::byte>(pe.rank + 40));
  const auto tell = [&](std::uint64_t listener, std::size_t bytes) {
    pe.await([&] {
      return pe.carrier().post_note(peer, static_cast<ListenerNumber>(listener),
                                    std::span(note).first(bytes));
    });
    offered.drain(peer);
    pe.barrier();
  };
  const auto theirs = offered.listeners[static_cast<std::size_t>(peer)];
  tell(theirs, note.size());
  pe.await([&] { return offered.notes.load(std::memory_order_acquire) == 1; });
  EXPECT(offered.noted_by == peer && offered.noted_bytes == note.size());
  EXPECT(offered.noted_first == static_cast<std::byte>(peer + 40));
  pe.barrier();
  tell(theirs, 1);
  pe.await([&] { return offered.notes.load(std::memory_order_acquire) == 2; });
  EXPECT(offered.noted_bytes == 1);

  std::atomic<int> heard{0};
  const Carrier::Listener counts = {{}, [&](int, std::span<const std::byte>) { ++heard; }};
  ListenerNumber gone = 0, next = 0;
  EXPECT_OK(pe.carrier().add_listener(counts, gone));
  const std::vector<std::uint64_t> were = pe.share(gone);
  pe.carrier().remove_listener(gone);
  EXPECT_OK(pe.carrier().add_listener(counts, next));
  EXPECT(next != gone);
  pe.barrier();
  tell(were[static_cast<std::size_t>(peer)], 4);
  EXPECT(heard.load() == 0);
  tell(pe.share(next)[static_cast<std::size_t>(peer)], 4);
  pe.await([&] { return heard.load() == 1; });
  pe.carrier().remove_listener(next);
  EXPECT(offered.notes.load() == 2);
}

}  // namespace gimlet::pgas::testing

#endif
