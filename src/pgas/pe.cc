// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/pe.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "config.h"
#include "device/cores.h"
#include "device/log.h"
#include "device/settings.h"
#include "pgas/helper.h"
#include "pgas/segment/data_segment.h"
#include "pgas/segment/descriptor_exchange.h"

namespace gimlet::pgas {
namespace {

constexpr std::uint32_t kHotLooks = 20000;

std::string key_of(int generation, const char* what) {
  return fmt::format("gimlet.{}.{}", generation, what);
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

bool is_forced_ucx() {
  return device::settings().transport == "ucx";
}

void print_info() {
  for (const device::SettingInfo& info : device::setting_table()) {
    log::info("{}={} ({})", info.name, device::setting_text(info), info.sentence);
  }
}

pid_t initialized_pid = 0;

/// For programs that leave main without shmem_finalize. A forked child, a process that ends by
/// shmem_global_exit and one that reports a failure must not enter a barrier here: the launcher
/// ends the others.
void finalize_at_exit(int status, void*) {
  if (::getpid() != initialized_pid || status != 0) return;
  while (Pe::self().is_initialized()) Pe::self().finalize();
}

}  // namespace

DefaultPe::DefaultPe() : pe() {}
DefaultPe default_pe;

// ---- start
// ------------------------------------------------------------------------------------------

Status Pe::init() {
  const std::scoped_lock lock(lifecycle_);
  if (init_count_++ > 0) return {};
  ++generation_;
  if (Status status = start(); !status.ok()) {
    init_count_ = 0;
    return status;
  }
  initialized_.store(true, std::memory_order_release);
  if (initialized_pid == 0) ::on_exit(finalize_at_exit, nullptr);
  initialized_pid = ::getpid();
  return {};
}

Status Pe::start() {
  const device::Settings& settings = device::settings();
  GIMLET_TRY(make_bootstrap(bootstrap_));
  dead_peer_word_.store(&bootstrap_->dead_peer_word(), std::memory_order_release);
  rank_ = bootstrap_->rank();
  size_ = bootstrap_->size();
  log::set_label(fmt::format("PE {}", rank_));
  if (rank_ == 0 && settings.show_version) log::info("Gimlet {}, OpenSHMEM 1.6", GIMLET_VERSION);
  if (rank_ == 0 && settings.show_info) print_info();
  report_after_ns_ = static_cast<std::uint64_t>(settings.host_wait_report * 1e9);

  GIMLET_TRY(device::host_memory().allocate(kControlBytes + settings.symmetric_size, "gimlet-heap",
                                            heap_));
  // Offsets count from the base of the segment, so that an aligned offset is an aligned address on
  // every PE.
  allocator_ = std::make_unique<OffsetAllocator>(heap_->size());
  (void)allocator_->allocate(kControlBytes, OffsetAllocator::kGranule);
  ::sched_getaffinity(0, sizeof(cpu_set_t), &own_control().cpus);
  segments_ = {{heap_->base(), heap_->size()}, find_data_segment()};

  GIMLET_TRY(map_node());
  count_cores();
  heap_start_ = reinterpret_cast<std::uintptr_t>(heap_->base());
  heap_bytes_ = heap_->size();
  heap_element_bytes_ = heap_bytes_ - kLargestElement;
  host_base_ = host_bases_.data();
  sync_epoch_ = 0;
  has_two_ways_.store(false, std::memory_order_relaxed);

  const bool all_direct =
      std::ranges::none_of(host_bases_, [](std::byte* base) { return base == nullptr; });
  if (!all_direct) GIMLET_TRY(start_transport());
  if (size_ > 1) {
    helper_ = std::make_unique<Helper>(*this);
    GIMLET_TRY(helper_->start());
  }
  log::debug("{} of {}, heap {} bytes, bootstrap {}, {} PEs of this node are mapped", rank_, size_,
             settings.symmetric_size, bootstrap_->name(), imported_.size() + 1);
  return {};
}

/// Maps the heaps of the PEs of this node. A PE that can't take part is reached through UCX
/// instead.
Status Pe::map_node() {
  mapped_base_.assign(static_cast<std::size_t>(size_), nullptr);
  host_bases_.assign(static_cast<std::size_t>(size_), nullptr);
  mapped_base_[static_cast<std::size_t>(rank_)] = heap_->base();
  host_bases_[static_cast<std::size_t>(rank_)] = heap_->base();
  why_not_mapped_ = "it runs on another node";
  const std::vector<int>& node = bootstrap_->node_ranks();
  if (node.size() <= 1) return {};

  std::vector<DescriptorOffer> offers;
  if (const Status status = share_heaps(offers); !status.ok()) {
    if (status.code() == Code::kTimeout || status.code() == Code::kRemote) {
      return fail(status.code(), "{}", status.message());
    }
    why_not_mapped_ = status.message();
    log::debug("the heaps of this node are not mapped: {}", status.message());
    return {};
  }
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (node[i] == rank_ || !offers[i].fd.valid()) continue;
    // Offsets are checked against the own heap only.
    if (offers[i].size != heap_->size()) {
      return fail(Code::kInvalidUsage,
                  "PE {} has a heap of {} bytes and this PE one of {} bytes; SHMEM_SYMMETRIC_SIZE "
                  "must be the same for all",
                  node[i], offers[i].size, heap_->size());
    }
    std::unique_ptr<device::Memory> peer;
    GIMLET_TRY(device::host_memory().import(std::move(offers[i].fd), offers[i].size, peer));
    const auto pe = static_cast<std::size_t>(node[i]);
    mapped_base_[pe] = peer->base();
    if (!is_forced_ucx()) host_bases_[pe] = peer->base();
    imported_.push_back(std::move(peer));
  }
  return {};
}

Status Pe::share_heaps(std::vector<DescriptorOffer>& offers) {
  const std::vector<int>& node = bootstrap_->node_ranks();
  const int members = static_cast<int>(node.size());
  const int member = static_cast<int>(std::ranges::find(node, rank_) - node.begin());
  const double patience = device::settings().connect_timeout;
  const std::string ticket_key = key_of(generation_, "node");
  const std::string absent_key = key_of(generation_, "unmapped");

  DescriptorOffer own;
  own.size = heap_->size();
  GIMLET_TRY(heap_->export_fd(own.fd));
  ExchangeLimits limits;
  limits.seconds = patience;
  limits.hopeless = [this] { return dead_peer() >= 0; };

  if (member == 0) {
    std::unique_ptr<DescriptorLeader> leader;
    GIMLET_TRY(DescriptorLeader::open(leader));
    GIMLET_TRY(bootstrap_->put(ticket_key, bytes_of(leader->ticket())));
    GIMLET_TRY(bootstrap_->commit());
    limits.absent = [&](int awaited) {
      std::vector<std::byte> said;
      return bootstrap_->get(node[static_cast<std::size_t>(awaited)], absent_key, 0, said).ok();
    };
    return leader->serve(members, std::move(own), limits, offers);
  }
  std::vector<std::byte> blob;
  GIMLET_TRY(bootstrap_->get(node[0], ticket_key, patience, blob));
  ExchangeTicket ticket;
  if (blob.size() != sizeof ticket) {
    return fail(Code::kRemote,
                "PE {} published {} bytes to meet at, not {}: is it another release of Gimlet?",
                node[0], blob.size(), sizeof ticket);
  }
  std::memcpy(&ticket, blob.data(), sizeof ticket);
  Status status = exchange_with_leader(ticket, member, members, std::move(own), limits, offers);
  if (status.code() != Code::kSystem) return status;
  // Not reachable from here (another namespace, a filter): the leader must not wait for this PE.
  const std::byte one{1};
  GIMLET_TRY(bootstrap_->put(absent_key, std::span<const std::byte>(&one, 1)));
  GIMLET_TRY(bootstrap_->commit());
  return status;
}

/// PEs that are bound to a core each are not oversubscribed although each may use one core only:
/// what counts is the union of what the PEs of the node may use.
void Pe::count_cores() {
  cpu_set_t all;
  CPU_ZERO(&all);
  int mapped = 0;
  for (std::size_t pe = 0; pe < mapped_base_.size(); ++pe) {
    if (mapped_base_[pe] == nullptr) continue;
    ++mapped;
    CPU_OR(&all, &all, &control(static_cast<int>(pe))->cpus);
  }
  const bool oversubscribed = mapped > std::max(1, CPU_COUNT(&all));
  device::set_oversubscribed(oversubscribed);
  device::set_local_pes(
      std::max(1, mapped * device::allowed_cores() / std::max(1, CPU_COUNT(&all))));
  hot_looks_ = oversubscribed || is_forced_ucx() ? 1 : kHotLooks;
}

Status Pe::start_transport() {
  const std::scoped_lock lock(transport_mutex_);
  if (transport_ != nullptr) return {};
  ControlArea& area = own_control();
  TransportOwner owner;
  owner.rank = rank_;
  owner.size = size_;
  owner.segments = segments_;
  owner.find_blob = [this](int pe, std::vector<std::byte>& blob, Status& why) {
    return find_blob(pe, blob, why);
  };
  owner.dead_peer = [this] { return dead_peer(); };
  owner.connect_timeout = device::settings().connect_timeout;
  owner.bounce_bytes = device::settings().gin_bounce_size;
  std::vector<std::byte> blob;
  Status status = make_ucx_transport(owner, transport_, blob);
  if (status.ok() && blob.size() > ControlArea::kBlobBytes) {
    status = fail(Code::kInternal, "the address of this PE has {} bytes, {} are provided for",
                  blob.size(), ControlArea::kBlobBytes);
  }
  if (!status.ok()) {
    area.transport_state.store(ControlArea::kFailed, std::memory_order_release);
    return status;
  }
  std::memcpy(area.blob, blob.data(), blob.size());
  area.blob_bytes = static_cast<std::uint32_t>(blob.size());
  // Release: find_blob() of a peer reads the blob after it has loaded the state with acquire.
  area.transport_state.store(ControlArea::kReady, std::memory_order_release);
  const bool has_unmapped =
      std::ranges::any_of(mapped_base_, [](std::byte* base) { return base == nullptr; });
  if (has_unmapped) {
    GIMLET_TRY(bootstrap_->put(key_of(generation_, "ucx"), blob));
    GIMLET_TRY(bootstrap_->commit());
  }
  // Release: a thread that loads the pointer with acquire sees the whole transport.
  transport_ready_.store(transport_.get(), std::memory_order_release);
  if (helper_ != nullptr) helper_->notice_transport();
  return {};
}

TransportOwner::Lookup Pe::find_blob(int pe, std::vector<std::byte>& blob, Status& why) {
  using Lookup = TransportOwner::Lookup;
  if (mapped_base_[static_cast<std::size_t>(pe)] == nullptr) {
    Status status = bootstrap_->get(pe, key_of(generation_, "ucx"), 0, blob);
    if (status.ok()) return Lookup::kReady;
    if (status.code() == Code::kTimeout) return Lookup::kPending;
    why = std::move(status);
    return Lookup::kFailed;
  }
  ControlArea& area = *control(pe);
  switch (area.transport_state.load(std::memory_order_acquire)) {
    case ControlArea::kReady:
      blob.assign(area.blob, area.blob + area.blob_bytes);
      return Lookup::kReady;
    case ControlArea::kFailed:
      why = fail(Code::kUnreachable, "PE {} could not start UCX", pe);
      return Lookup::kFailed;
    default:
      // One ring is enough: the helper looks at transport_wanted after every change of its
      // doorbell.
      if (area.transport_wanted.exchange(1, std::memory_order_acq_rel) == 0) ring_doorbell(area);
      return Lookup::kPending;
  }
}

Transport& Pe::transport(const char* call) {
  if (Transport* ready = started_transport()) return *ready;
  check(call, start_transport());
  return *started_transport();
}

Pe::KeptTransport::KeptTransport(Pe& pe, int generation) : pe_(pe) {
  pe_.transport_keepers_.fetch_add(1);
  transport_ = pe_.transport_ready_.load();
  if (transport_ != nullptr && pe_.generation() != generation) transport_ = nullptr;
}

// ---- end
// --------------------------------------------------------------------------------------------

void Pe::finalize() {
  const std::scoped_lock lock(lifecycle_);
  if (init_count_ == 0) return;
  quiet("shmem_finalize");
  if (Transport* transport = started_transport()) transport->quiet_carried();
  sync("shmem_finalize");
  if (--init_count_ > 0) return;
  settle("shmem_finalize");
  initialized_.store(false, std::memory_order_release);
  stop();
}

void Pe::stop() {
  helper_.reset();
  // Sequentially consistent, as in KeptTransport: either we see its keeper, or it sees null.
  transport_ready_.store(nullptr);
  device::Backoff backoff;
  while (transport_keepers_.load() != 0) backoff.step();
  transport_.reset();
  ended_generation_.store(generation_, std::memory_order_release);
  heap_start_ = 0;
  heap_bytes_ = 0;
  heap_element_bytes_ = 0;
  host_base_ = nullptr;
  rank_ = -1;
  size_ = -1;
  imported_.clear();
  mapped_base_.clear();
  host_bases_.clear();
  allocator_.reset();
  heap_.reset();
  segments_.clear();
  bootstrap_.reset();
  log::set_label("");
}

void Pe::global_exit(int status) {
  ::fflush(nullptr);
  initialized_pid = -1;  // no barrier on the way out
  if (bootstrap_ != nullptr) bootstrap_->abort(status, "");
  ::_exit(status);
}

void Pe::die(const char* call, const std::string& why) {
  log::error("{}: {}", call, why);
  ::fflush(nullptr);
  initialized_pid = -1;
  if (bootstrap_ != nullptr) bootstrap_->abort(EXIT_FAILURE, "");  // the sentence is out already
  ::_exit(EXIT_FAILURE);
}

// ---- addresses
// --------------------------------------------------------------------------------------

bool Pe::is_symmetric(const void* address) const {
  const auto* place = static_cast<const std::byte*>(address);
  return std::ranges::any_of(segments_, [place](const LocalSegment& segment) {
    return place >= segment.base && place < segment.base + segment.size;
  });
}

Pe::Route Pe::route(const char* call, const char* argument, const void* address, std::size_t bytes,
                    int pe) {
  if (!is_initialized()) die(call, "called before shmem_init or after shmem_finalize");
  if (!exists(pe))
    die(call, fmt::format("PE {} does not exist; allowed are 0 to {}", pe, size_ - 1));
  const auto* place = static_cast<const std::byte*>(address);
  for (std::size_t id = 0; id < segments_.size(); ++id) {
    const LocalSegment& segment = segments_[id];
    if (place < segment.base || place >= segment.base + segment.size) continue;
    const auto offset = static_cast<std::uint64_t>(place - segment.base);
    if (segment.size - offset < bytes) {
      die(call,
          fmt::format(
              "{} {} with {} bytes reaches past the end of the {}, which has {} bytes left there",
              argument, address, bytes, id == kHeapSegment ? "symmetric heap" : "program's data",
              segment.size - offset));
    }
    if (pe == rank_) return {const_cast<std::byte*>(place), {}};
    if (id == kHeapSegment && host_base_[pe] != nullptr) {
      return {host_base_[pe] + offset, {}};
    }
    if (host_base_[pe] != nullptr) has_two_ways_.store(true, std::memory_order_relaxed);
    return {nullptr, {pe, static_cast<std::uint16_t>(id), offset}};
  }
  die(call, fmt::format("{} {} is not symmetric; allowed are addresses in the symmetric heap and "
                        "in global or static "
                        "variables of the program",
                        argument, address));
}

// ---- heap
// -------------------------------------------------------------------------------------------

void* Pe::allocate(const char* call, std::size_t bytes, std::size_t alignment) {
  if (!is_initialized()) die(call, "called before shmem_init or after shmem_finalize");
  const std::scoped_lock lock(heap_mutex_);
  if (const auto offset = allocator_->allocate(bytes, alignment)) return heap_->base() + *offset;
  if (rank_ == 0) {
    log::warning(
        "{} of {} bytes does not fit the symmetric heap: {} bytes are in use, the largest free "
        "block has {} bytes; raise "
        "SHMEM_SYMMETRIC_SIZE (now {})",
        call, bytes, allocator_->used() - kControlBytes, allocator_->largest_free(),
        device::settings().symmetric_size);
  }
  return nullptr;
}

std::size_t Pe::allocated_bytes(const char* call, const void* address) {
  const auto* place = static_cast<const std::byte*>(address);
  if (!is_initialized()) die(call, "called before shmem_init or after shmem_finalize");
  const std::scoped_lock lock(heap_mutex_);
  // The control area is an allocation too, but not the program's.
  const bool is_users =
      place >= heap_->base() + kControlBytes && place < heap_->base() + heap_->size();
  const std::size_t bytes =
      is_users ? allocator_->size_of(static_cast<std::uint64_t>(place - heap_->base())) : 0;
  if (bytes == 0)
    die(call, fmt::format("ptr {} is not what a symmetric allocation returned", address));
  return bytes;
}

void Pe::release(const char* call, void* address) {
  (void)allocated_bytes(call, address);
  const std::scoped_lock lock(heap_mutex_);
  allocator_->release(static_cast<std::uint64_t>(static_cast<std::byte*>(address) - heap_->base()));
}

// ---- ordering and waiting
// ---------------------------------------------------------------------------

void Pe::check_peers(const char* call) {
  const int dead = dead_peer();
  if (dead >= 0) die(call, fmt::format("PE {} died while this PE waits", dead));
}

void Pe::report_wait(const char* call, std::uint64_t waited_ns, const std::string& what) {
  log::warning("{} has waited {:.1f} s for {}", call, static_cast<double>(waited_ns) * 1e-9, what);
}

}  // namespace gimlet::pgas
