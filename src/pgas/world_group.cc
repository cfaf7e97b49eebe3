// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "device/settings.h"
#include "pgas/group.h"
#include "pgas/pe.h"
#include "pgas/segment/descriptor_exchange.h"
#include "pgas/transport/carrier.h"

namespace gimlet::pgas {
namespace {

constexpr const char* kCall = "group of all PEs";

/// The carrier of this PE's transport, for as long as there is one: windows, communicators and
/// their proxy threads may outlive shmem_finalize().
class WorldCarrier final : public Carrier {
 public:
  explicit WorldCarrier(Pe& pe) : pe_(pe), generation_(pe.generation()) {}

  Status add_segment(std::byte* base, std::size_t size, SegmentNumber& number) override {
    const Kept kept(*this);
    return kept.carrier == nullptr ? gone() : kept.carrier->add_segment(base, size, number);
  }
  Status add_staged_segment(std::byte* base, std::size_t size, const device::MemoryKind& kind,
                            SegmentNumber& number) override {
    const Kept kept(*this);
    return kept.carrier == nullptr ? gone()
                                   : kept.carrier->add_staged_segment(base, size, kind, number);
  }
  void remove_segment(SegmentNumber number) override {
    const Kept kept(*this);
    if (kept.carrier != nullptr) kept.carrier->remove_segment(number);
  }
  Status add_listener(Listener listener, ListenerNumber& number) override {
    const Kept kept(*this);
    return kept.carrier == nullptr ? gone()
                                   : kept.carrier->add_listener(std::move(listener), number);
  }
  void remove_listener(ListenerNumber number) override {
    const Kept kept(*this);
    if (kept.carrier != nullptr) kept.carrier->remove_listener(number);
  }
  bool post(CarriedRequest& request) override {
    const Kept kept(*this);
    if (kept.carrier != nullptr) return kept.carrier->post(request);
    if (!pe_.has_ended(generation_)) return false;  // parts of it may still be open
    request.completed(request, gone());
    return true;
  }
  bool post_note(int rank, ListenerNumber listener, std::span<const std::byte> note) override {
    const Kept kept(*this);
    return kept.carrier == nullptr || kept.carrier->post_note(rank, listener, note);
  }
  bool progress() override {
    const Kept kept(*this);
    return kept.carrier != nullptr && kept.carrier->progress();
  }
  std::uint64_t confirmations() const override {
    const Kept kept(*this);
    return kept.carrier == nullptr ? 0 : kept.carrier->confirmations();
  }

 private:
  /// For one call.
  struct Kept {
    explicit Kept(const WorldCarrier& world)
        : transport(world.pe_, world.generation_),
          carrier(transport.get() == nullptr ? nullptr : &transport.get()->carrier()) {}
    const Pe::KeptTransport transport;
    Carrier* const carrier;
  };
  static Status gone() {
    return fail(Code::kInvalidUsage, "the transport went with shmem_finalize");
  }

  Pe& pe_;
  const int generation_;
};

/// All PEs: agreement through the mailboxes of the control areas, memory through the descriptor
/// exchange. It may outlive shmem_finalize(), after which the PE knows none of this any more.
class WorldGroup final : public Group {
 public:
  WorldGroup() {
    for (int r = 0; r < size_; ++r) is_mapped_.push_back(pe_.mapped_base(r) != nullptr);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int world_pe(int rank) const override { return rank; }

  bool is_mappable(int rank, std::string* why_not) const override {
    if (is_mapped_[static_cast<std::size_t>(rank)]) return true;
    if (why_not != nullptr) *why_not = pe_.why_not_mapped();
    return false;
  }

  Status barrier() override {
    GIMLET_TRY(is_alive());
    pe_.quiet(kCall);
    pe_.sync(kCall);
    return {};
  }

  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    GIMLET_TRY(is_alive());
    for (std::size_t done = 0; done < mine.size(); done += ControlArea::kMailboxBytes) {
      const std::size_t part = std::min(mine.size() - done, ControlArea::kMailboxBytes);
      std::memcpy(pe_.own_control().mailbox, mine.data() + done, part);
      pe_.sync(kCall);
      for (int peer = 0; peer < size(); ++peer) {
        std::byte* to = all.data() + static_cast<std::size_t>(peer) * mine.size() + done;
        GIMLET_TRY(read_mailbox(peer, to, part));
      }
      pe_.sync(kCall);  // nobody overwrites a mailbox that is still read
    }
    return {};
  }

  Status map_peers(const device::Memory* mine, PeerMemory& peers) override;

  Carrier* carrier(Status& why_not) override {
    if (pe_.started_transport() == nullptr) why_not = pe_.start_transport();
    return why_not.ok() ? &carrier_ : nullptr;
  }

  int dead_rank() const override { return pe_.dead_peer(); }
  [[noreturn]] void abort(int status, const std::string& why) override {
    pe_.bootstrap().abort(status, why);
    ::_exit(status);  // for compilers that lose the attribute of a virtual call
  }

 private:
  Status is_alive() const {
    if (pe_.is_initialized()) return {};
    return fail(Code::kInvalidUsage, "shmem_init has not been called, or shmem_finalize has");
  }
  Status read_mailbox(int peer, std::byte* to, std::size_t bytes) {
    if (const ControlArea* area = pe_.control(peer)) {
      std::memcpy(to, area->mailbox, bytes);
      return {};
    }
    return pe_.transport(kCall).get(to, {peer, kHeapSegment, offsetof(ControlArea, mailbox)},
                                    bytes);
  }
  Status exchange(const std::vector<int>& node, const device::Memory* mine,
                  std::vector<DescriptorOffer>& offers);

  Pe& pe_ = Pe::self();
  const int rank_ = pe_.rank();
  const int size_ = pe_.size();
  std::vector<bool> is_mapped_;  // by rank
  WorldCarrier carrier_{pe_};
};

/// The ranks of this node elect their lowest as the leader; its ticket travels by allgather, which
/// only PEs of the job can read.
Status WorldGroup::exchange(const std::vector<int>& node, const device::Memory* mine,
                            std::vector<DescriptorOffer>& offers) {
  const bool is_leader = node.front() == rank();
  std::unique_ptr<DescriptorLeader> leader;
  if (is_leader) GIMLET_TRY(DescriptorLeader::open(leader));
  const ExchangeTicket own_ticket = is_leader ? leader->ticket() : ExchangeTicket{};
  std::vector<ExchangeTicket> tickets(static_cast<std::size_t>(size()));
  GIMLET_TRY(allgather(std::as_bytes(std::span(&own_ticket, 1)),
                       std::as_writable_bytes(std::span(tickets))));

  DescriptorOffer own;
  if (mine != nullptr) {
    own.size = mine->size();
    GIMLET_TRY(mine->export_fd(own.fd));
  }
  ExchangeLimits limits;
  limits.seconds = device::settings().connect_timeout;
  limits.hopeless = [this] { return dead_rank() >= 0; };
  const int members = static_cast<int>(node.size());
  if (is_leader) return leader->serve(members, std::move(own), limits, offers);
  const int member = static_cast<int>(std::ranges::find(node, rank()) - node.begin());
  return exchange_with_leader(tickets[static_cast<std::size_t>(node.front())], member, members,
                              std::move(own), limits, offers);
}

Status WorldGroup::map_peers(const device::Memory* mine, PeerMemory& peers) {
  GIMLET_TRY(is_alive());
  std::vector<int> node;
  for (int r = 0; r < size(); ++r) {
    if (pe_.mapped_base(r) != nullptr) node.push_back(r);
  }
  std::vector<DescriptorOffer> offers;
  GIMLET_TRY(exchange(node, mine, offers));
  peers.base.assign(static_cast<std::size_t>(size()), nullptr);
  peers.size.assign(static_cast<std::size_t>(size()), 0);
  peers.imported.clear();
  for (std::size_t i = 0; i < node.size(); ++i) {
    const auto r = static_cast<std::size_t>(node[i]);
    if (node[i] == rank()) {
      if (mine == nullptr) continue;
      peers.base[r] = mine->base();
      peers.size[r] = mine->size();
      continue;
    }
    if (!offers[i].fd.valid()) continue;
    std::unique_ptr<device::Memory> memory;
    GIMLET_TRY(device::host_memory().import(std::move(offers[i].fd), offers[i].size, memory));
    peers.base[r] = memory->base();
    peers.size[r] = offers[i].size;
    peers.imported.push_back(std::move(memory));
  }
  return {};
}

}  // namespace

const device::Memory* find_heap_memory(const void* address) {
  const device::Memory* heap = Pe::self().is_initialized() ? Pe::self().heap() : nullptr;
  const auto* place = static_cast<const std::byte*>(address);
  if (heap == nullptr || place < heap->base() + kControlBytes ||
      place >= heap->base() + heap->size())
    return nullptr;
  return heap;
}

Status make_world_group(std::unique_ptr<Group>& out) {
  if (!Pe::self().is_initialized()) {
    return fail(Code::kInvalidUsage, "shmem_init has not been called, or shmem_finalize has");
  }
  out = std::make_unique<WorldGroup>();
  return {};
}

}  // namespace gimlet::pgas
