// SPDX-License-Identifier: BSD-3-Clause
#include "gin/communicator.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "device/log.h"
#include "device/settings.h"
#include "gin/agreed_settings.h"
#include "gin/device_text.h"
#include "gin/lsa_team.h"
#include "gin/memory_table.h"
#include "gin/path/direct/mapped_carrier.h"

namespace gimlet::gin {
namespace {

/// Windows hold 16-byte vectors and 8-byte signals, whose alignment follows from the window's.
constexpr std::size_t kWindowAlignment = 16;

template <class T>
Status gather(pgas::Group& group, const T& mine, std::vector<T>& all) {
  static_assert(std::is_trivially_copyable_v<T>);
  all.resize(static_cast<std::size_t>(group.size()));
  return group.allgather(std::as_bytes(std::span(&mine, 1)),
                         std::as_writable_bytes(std::span(all)));
}

/// The longest range of ranks around this one that loads and stores reach.
Run direct_run(const DirectPath& direct, int rank, int size) {
  int first = rank;
  int last = rank;
  while (first > 0 && direct.reaches(first - 1, nullptr)) --first;
  while (last + 1 < size && direct.reaches(last + 1, nullptr)) ++last;
  return {first, last - first + 1};
}

Status check_buffer(const void* buffer, std::size_t bytes, int flags, MemoryPiece& piece) {
  constexpr int kFlags = GIN_WIN_COLL_SYMMETRIC | GIN_WIN_STRICT_ORDERING;
  if ((flags & ~kFlags) != 0) {
    return fail(Code::kInvalidArgument, "the window flags are {:#x}; allowed are {:#x}", flags,
                kFlags);
  }
  if (buffer == nullptr || bytes == 0) {
    return fail(Code::kInvalidArgument, "a window of {} bytes at {}; at least 1 byte is needed",
                bytes, buffer);
  }
  if (reinterpret_cast<std::uintptr_t>(buffer) % kWindowAlignment != 0) {
    return fail(Code::kInvalidArgument, "a window at {}; its start must be aligned to {} bytes",
                buffer, kWindowAlignment);
  }
  return MemoryTable::of_process().find(buffer, bytes, piece);
}

/// Also what transports could touch.
bool stages_all() {
  return device::settings().gin_staging == "always";
}

}  // namespace

void SharedGrave::keep(std::shared_ptr<const device::Memory> memory) {
  const std::scoped_lock lock(mutex_);
  memory_.push_back(std::move(memory));
}

Communicator::Communicator(std::unique_ptr<pgas::Group> group, Members members)
    : group_(std::move(group)),
      direct_(*group_, device::settings().gin_direct_span),
      proxy_(*group_),
      members_(members),
      next_seed_(device::settings().gin_reorder) {}

Communicator::~Communicator() {
  direct_.close();
  for (auto& device_comm : device_comms_) forget(std::move(device_comm));
}

Status Communicator::over(std::unique_ptr<pgas::Group> group, Members members,
                          std::unique_ptr<Communicator>& out) {
  std::unique_ptr<Communicator> comm(new Communicator(std::move(group), members));
  GIMLET_TRY(check_agreed_settings(*comm->group_, comm->rank_word()));
  GIMLET_TRY(comm->settle_reach());
  GIMLET_TRY(comm->agree(comm->open(), "make a communicator"));
  out = std::move(comm);
  return {};
}

Status Communicator::over_world(std::unique_ptr<Communicator>& out) {
  std::unique_ptr<pgas::Group> group;
  GIMLET_TRY(pgas::make_world_group(group));
  return over(std::move(group), Members::kPes, out);
}

Status Communicator::over_threads(int ranks, std::vector<std::unique_ptr<Communicator>>& out) {
  const auto grave = std::make_shared<SharedGrave>();
  std::vector<Run> runs;
  bool has_proxied = false;
  for (auto& group : pgas::make_local_groups(ranks)) {
    std::unique_ptr<Communicator> comm(new Communicator(std::move(group), Members::kThreads));
    comm->grave_ = grave;
    runs.push_back(direct_run(comm->direct_, comm->rank(), ranks));
    has_proxied = has_proxied || comm->wants_proxy();
    out.push_back(std::move(comm));
  }
  for (auto& comm : out) {
    comm->lsa_size_ = lsa_team_size(runs, device::settings().lsa_team_size);
    comm->has_proxied_ = has_proxied;
    if (has_proxied) GIMLET_TRY(comm->proxy_.open());
    GIMLET_TRY(comm->open());
  }
  return {};
}

/// The path that operations take to a rank, or null.
const Path* Communicator::path_to(int rank, std::string* why_not) const {
  const std::string& forced = device::settings().gin_path;
  if (forced != "proxy" && direct_.reaches(rank, why_not)) return &direct_;
  if (forced != "direct" && proxy_.reaches(rank, nullptr)) return &proxy_;
  return nullptr;
}

/// Is there a rank that only a proxy might reach?
bool Communicator::wants_proxy() const {
  const std::string& forced = device::settings().gin_path;
  if (forced == "direct") return false;
  if (forced == "proxy") return true;
  for (int r = 0; r < size(); ++r) {
    if (!direct_.reaches(r, nullptr)) return true;
  }
  return false;
}

/// What follows from how the ranks see each other, the same for all.
Status Communicator::settle_reach() {
  struct View {
    Run run;
    std::uint32_t wants_proxy;
  };
  std::vector<View> views;
  GIMLET_TRY(
      gather(*group_, View{direct_run(direct_, rank(), size()), wants_proxy() ? 1u : 0u}, views));
  std::vector<Run> runs;
  for (const View& view : views) {
    runs.push_back(view.run);
    has_proxied_ = has_proxied_ || view.wants_proxy != 0;
  }
  lsa_size_ = lsa_team_size(runs, device::settings().lsa_team_size);
  return has_proxied_ ? settle_proxy() : Status();
}

/// The proxy path is there on all ranks or on none; a rank that it would be needed for is named
/// when a device communicator needs it.
Status Communicator::settle_proxy() {
  const Status opened = proxy_.open();
  std::vector<std::uint8_t> all;
  GIMLET_TRY(gather(*group_, static_cast<std::uint8_t>(opened.ok() ? 1 : 0), all));
  const auto lacking = std::ranges::find(all, 0);
  if (lacking == all.end()) return {};
  proxy_.close();
  why_no_proxy_ =
      opened.ok() ? fmt::format("{} {} has no transport for it", rank_word(), lacking - all.begin())
                  : opened.message();
  return {};
}

Status Communicator::open() {
  for (int r = 0; r < size(); ++r) {
    slots_.push_back(direct_.reaches(r, nullptr) ? slot_count_++ : GIN_NO_SLOT);
  }
  return windows_.open();
}

/// A collective call goes on only where all ranks can.
Status Communicator::agree(Status mine, const char* what) {
  const std::uint8_t good = mine.ok() ? 1 : 0;
  std::vector<std::uint8_t> all;
  Status gathered = gather(*group_, good, all);
  if (!mine.ok()) return mine;
  GIMLET_TRY(std::move(gathered));
  for (int r = 0; r < size(); ++r) {
    if (all[static_cast<std::size_t>(r)] == 0) {
      return fail(Code::kRemote, "{} {} could not {}", rank_word(), r, what);
    }
  }
  return {};
}

bool Communicator::reaches(ginConnectionType_t connection, std::string* why_not) const {
  for (const int r : connected_ranks(connection)) {
    std::string why;
    if (path_to(r, &why) != nullptr) continue;
    if (!why_no_proxy_.empty()) why += (why.empty() ? "" : "; ") + why_no_proxy_;
    if (why_not != nullptr) *why_not = fmt::format("{} {}: {}", rank_word(), r, why);
    return false;
  }
  return true;
}

bool Communicator::needs_proxy(ginConnectionType_t connection) const {
  return std::ranges::any_of(connected_ranks(connection),
                             [this](int r) { return path_to(r, nullptr) == &proxy_; });
}

Status Communicator::path_name(int rank, const char*& name) const {
  if (rank < 0 || rank >= size()) {
    return fail(Code::kInvalidArgument, "{} {}; allowed are 0 to {}", rank_word(), rank,
                size() - 1);
  }
  const Path* path = path_to(rank, nullptr);
  name = path == nullptr ? "none" : path->name();
  return {};
}

std::string Communicator::sentence_prefix() const {
  // The log's own label names a PE.
  return members_ == Members::kPes ? std::string() : fmt::format("rank {}: ", rank());
}

// ---- windows ----

Status Communicator::register_window(void* buffer, std::size_t bytes, int flags,
                                     ginWindow_t& handle) {
  MemoryPiece piece;
  Status mine = check_buffer(buffer, bytes, flags, piece);
  GIMLET_TRY(agree(std::move(mine), "register its part of a window"));

  struct Part {
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  std::vector<Part> parts;
  GIMLET_TRY(gather(*group_, Part{piece.offset, bytes}, parts));
  Window window;
  window.memory = piece.memory;
  window.user_pointer = buffer;
  Status mapped = direct_.map(piece.memory.get(), window.mapping);
  if (proxy_.carrier() != nullptr) {
    // Also where mapping failed: the others do it too.
    const std::size_t offered = mapped.ok() ? bytes : 0;
    Status made = offer(static_cast<std::byte*>(buffer), offered, *piece.memory, window);
    if (mapped.ok()) mapped = std::move(made);
  }
  GIMLET_TRY(agree(std::move(mapped), "map the parts of a window"));

  std::vector<ginPeerMemory> by_rank(parts.size());
  for (std::size_t r = 0; r < parts.size(); ++r) {
    std::byte* base = window.mapping->peers.base[r];
    if (base != nullptr)
      by_rank[r] = {reinterpret_cast<char*>(base + parts[r].offset), parts[r].bytes};
  }
  return agree(add_window(std::move(window), by_rank, flags, handle), "add a window");
}

/// Makes a part of `memory` reachable through proxies. Collective.
Status Communicator::offer(std::byte* base, std::size_t bytes, const device::Memory& memory,
                           Window& window) {
  const device::MemoryKind* kind = &memory.kind();
  Status guarded;
  std::unique_ptr<device::GuardedRange> guard;
  if (kind->is_open_to_transports() && stages_all()) {
    guarded = device::GuardedRange::make(base, bytes, guard);
    if (guarded.ok()) {
      kind = &device::guarded_memory();
      base = guard->base();
    }
  }
  if (!kind->is_open_to_transports())
    window.staged = std::make_unique<StagedPart>(StagedPart{kind, base, std::move(guard)});
  // Also where it failed: the others do it too.
  Status offered = proxy_.offer(base, guarded.ok() ? bytes : 0, *kind, window.segments);
  return guarded.ok() ? std::move(offered) : std::move(guarded);
}

Status Communicator::add_window(Window window, const std::vector<ginPeerMemory>& by_rank, int flags,
                                ginWindow_t& handle) {
  window.parts.resize(slot_count_);
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    if (slots_[r] != GIN_NO_SLOT) window.parts[slots_[r]] = by_rank[r];
  }
  const ginPeerMemory& own = by_rank[static_cast<std::size_t>(rank())];
  const int lsa_first = rank() / lsa_size_ * lsa_size_;
  ginWindowEntry entry{};
  entry.base = own.base;
  entry.size = own.size;
  entry.rank = rank();
  entry.lsaFirst = lsa_first;
  entry.lsaSize = lsa_size_;
  entry.lsaSlot = slots_[static_cast<std::size_t>(lsa_first)];
  entry.flags = static_cast<std::uint32_t>(flags);
  return windows_.add(std::move(window), entry, handle);
}

Status Communicator::deregister_window(ginWindow_t handle) {
  return handle == nullptr ? Status() : windows_.remove(handle);
}

Status Communicator::user_pointer(ginWindow_t handle, void*& pointer) const {
  const Window* window = windows_.find(handle);
  if (window == nullptr) {
    return fail(Code::kInvalidArgument, "{} is not a window of this communicator",
                static_cast<void*>(handle));
  }
  pointer = window->user_pointer;
  return {};
}

// ---- device communicators ----

std::vector<int> Communicator::connected_ranks(ginConnectionType_t connection) const {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r) {
    const bool lsa = r / lsa_size_ == rank() / lsa_size_;
    const bool rail = r % lsa_size_ == rank() % lsa_size_;
    if (lsa || connection == GIN_CONNECTION_FULL || (rail && connection == GIN_CONNECTION_RAIL)) {
      ranks.push_back(r);
    }
  }
  return ranks;
}

Status Communicator::prepare(const ginDevCommRequirements_t* requirements, ResourceLayout& layout,
                             std::shared_ptr<const device::Memory>& memory) {
  GIMLET_TRY(make_layout(requirements, size(), lsa_size_, layout));
  std::string why;
  if (!reaches(layout.connection, &why)) {
    const bool forced = device::settings().gin_path == "direct";
    return fail(Code::kUnreachable, "{} {}",
                forced ? "GIN_PATH is direct, but it does not reach" : "no path reaches", why);
  }
  std::unique_ptr<device::Memory> fresh;
  GIMLET_TRY(device::host_memory().allocate(layout.bytes, "gimlet-gin-resources", fresh));
  memory = std::move(fresh);
  return {};
}

/// One exchange tells a rank that failed from ranks whose requirements differ.
Status Communicator::compare(const Status& mine, const ResourceLayout& layout) {
  struct Digest {
    std::uint64_t bytes;
    std::uint32_t contexts, signals, counters, world_barriers, rail_barriers;
    std::uint8_t connection, strong, good, reorders;
  };
  const Digest own = {layout.bytes,
                      layout.contexts,
                      layout.signals,
                      layout.counters,
                      layout.world_barriers,
                      layout.rail_barriers,
                      static_cast<std::uint8_t>(layout.connection),
                      layout.strong_legacy,
                      mine.ok(),
                      next_seed_ != 0};
  std::vector<Digest> all;
  Status gathered = gather(*group_, own, all);
  if (!mine.ok()) return {};  // the caller has the better sentence
  GIMLET_TRY(std::move(gathered));
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].good == 0) {
      return fail(Code::kRemote, "{} {} could not make its device communicator", rank_word(), r);
    }
    if (std::memcmp(&all[r], &all[0], sizeof(Digest)) != 0) {
      return fail(Code::kInvalidUsage, "the requirements of {} {} differ from those of {} 0",
                  rank_word(), r, rank_word());
    }
  }
  return {};
}

Status Communicator::create_device_comm(const ginDevCommRequirements_t* requirements,
                                        ginDevComm& out) {
  ResourceLayout layout;
  std::shared_ptr<const device::Memory> memory;
  Status mine = prepare(requirements, layout, memory);
  GIMLET_TRY(compare(mine, layout));
  GIMLET_TRY(std::move(mine));

  Window window;
  window.memory = memory;
  auto device_comm = std::make_unique<DeviceComm>();
  device_comm->memory = memory;
  Status ready = direct_.map(memory.get(), window.mapping);
  if (proxy_.carrier() != nullptr && layout.uses_gin) {
    const std::size_t offered = ready.ok() ? layout.bytes : 0;
    Status made = offer(memory->base(), offered, *memory, window);
    if (ready.ok()) ready = std::move(made);
  }
  if (ready.ok() && layout.uses_gin && (proxy_.carrier() != nullptr || next_seed_ != 0)) {
    ready =
        open_proxy(layout, static_cast<std::uint32_t>(requirements->ginQueueDepth), *device_comm);
  }
  GIMLET_TRY(agree(std::move(ready), "map the resources of a device communicator"));

  std::vector<ginPeerMemory> by_rank(static_cast<std::size_t>(size()));
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    std::byte* base = window.mapping->peers.base[r];
    if (base != nullptr) by_rank[r] = {reinterpret_cast<char*>(base), layout.bytes};
  }
  ginWindow_t handle = nullptr;
  Status added = add_window(std::move(window), by_rank, GIN_WIN_STRICT_ORDERING, handle);
  if (added.ok()) fill(layout, handle, *device_comm);
  if (added.ok()) added = start_proxy(layout, handle, *device_comm);
  // Also the barrier behind which every rank's words are ready for the others.
  GIMLET_TRY(agree(std::move(added), "add the resources of a device communicator"));

  for (const ResourceLayout::Grant& grant : layout.grants) {
    ginDevResourceRequirements_t& entry = *grant.entry;
    if (entry.outBufferHandle != nullptr) {
      *entry.outBufferHandle = static_cast<ginDevResourceHandle_t>(grant.buffer_offset / 128);
    }
    if (entry.outGinSignalStart != nullptr) *entry.outGinSignalStart = grant.first_signal;
    if (entry.outGinCounterStart != nullptr) *entry.outGinCounterStart = grant.first_counter;
  }
  out = device_comm->comm;
  const std::scoped_lock lock(device_comms_mutex_);
  device_comms_.push_back(std::move(device_comm));
  return {};
}

/// What an error of this communicator does, from any thread: words are set, and the first one is
/// told. No sentence: another rank has told it.
void Communicator::fail_device_comm(const ginDevComm& comm, const ErrorRecord& record,
                                    const std::string& sentence) {
  if (!set_errors(comm, record) || sentence.empty()) return;
  log::error("{}{}", sentence_prefix(), sentence);
}

/// Not started: peers may raise signals and send notes, but nothing is carried yet.
Status Communicator::open_proxy(const ResourceLayout& layout, std::uint32_t queue_depth,
                                DeviceComm& device_comm) {
  const std::uint32_t threads =
      Proxies::count(layout.contexts, device::settings().gin_proxy_contexts);
  const std::uint32_t contexts_each = (layout.contexts + threads - 1) / threads;
  std::unique_ptr<RingMemory> rings;
  GIMLET_TRY(RingMemory::make(layout, size(), queue_depth, contexts_each, rings));
  Proxy::Setup setup;
  setup.carriers = carriers_of(threads, device_comm);
  if (stages_all()) {
    GIMLET_TRY(rings->add_bounces());
    GIMLET_TRY(stage(setup.carriers, device_comm));
  }
  setup.rank = rank();
  setup.ranks = size();
  setup.connected = connected_ranks(layout.connection);
  for (int r = 0; r < size(); ++r) {
    setup.is_mapped.push_back(!device_comm.reordering.empty() && path_to(r, nullptr) == &direct_);
  }
  setup.windows = windows_.entries();
  setup.signals_pitch = layout.signals_pitch;
  setup.counters_pitch = layout.counters_pitch;
  setup.error = reinterpret_cast<ginErrorWord*>(device_comm.memory->base());
  setup.describe = [this](const ginFault& fault) { return fault_sentence(*this, fault); };
  setup.fail = [this, kept = &device_comm](const ErrorRecord& record, const std::string& sentence) {
    fail_device_comm(kept->comm, record, sentence);
  };
  return Proxies::open(std::move(setup), std::move(rings), device_comm.proxy);
}

/// Each device communicator has a seed of its own, so that a program sees several orders.
std::vector<pgas::Carrier*> Communicator::carriers_of(std::uint32_t threads,
                                                      DeviceComm& device_comm) {
  if (next_seed_ == 0) return std::vector<pgas::Carrier*>(threads, proxy_.carrier());
  if (rank() == 0)
    log::info("{}operations are reordered with seed {}", sentence_prefix(), next_seed_);
  std::vector<pgas::Carrier*> carriers;
  for (std::uint32_t t = 0; t < threads; ++t) {
    device_comm.reordering.push_back(make_reordering());
    carriers.push_back(device_comm.reordering.back().get());
  }
  ++next_seed_;
  return carriers;
}

/// Bounce memory for each proxy thread: none is allocated once kernels run.
Status Communicator::stage(std::vector<pgas::Carrier*>& carriers, DeviceComm& device_comm) {
  for (pgas::Carrier*& carrier : carriers) {
    GIMLET_TRY(pgas::StagingCarrier::make(device::settings().gin_bounce_size, *carrier,
                                          device::staged_kinds(),
                                          device_comm.staging.emplace_back()));
    carrier = device_comm.staging.back().get();
  }
  return {};
}

std::unique_ptr<ReorderingCarrier> Communicator::make_reordering() const {
  MappedCarrier::Setup setup;
  setup.windows = windows_.entries();
  setup.capacity = WindowTable::kCapacity;
  setup.others = proxy_.carrier();
  for (int r = 0; r < size(); ++r) {
    const bool direct = path_to(r, nullptr) == &direct_;
    setup.slots.push_back(direct ? slots_[static_cast<std::size_t>(r)] : GIN_PROXY_SLOT);
  }
  return std::make_unique<ReorderingCarrier>(std::make_unique<MappedCarrier>(std::move(setup)),
                                             next_seed_, rank());
}

/// Collective.
Status Communicator::start_proxy(const ResourceLayout& layout, ginWindow_t resources,
                                 DeviceComm& device_comm) {
  if (device_comm.proxy == nullptr) return {};
  std::vector<Proxy::Address> addresses;
  GIMLET_TRY(gather(*group_, device_comm.proxy->address(), addresses));
  for (int r = 0; r < size(); ++r) {
    if (path_to(r, nullptr) != &direct_) continue;
    Proxy::Address& address = addresses[static_cast<std::size_t>(r)];
    address.signals = static_cast<pgas::SegmentNumber>(resources - windows_.entries());
    address.signals_offset = layout.signals_offset;
  }
  return device_comm.proxy->start(std::move(addresses));
}

void Communicator::fill(const ResourceLayout& layout, ginWindow_t window, DeviceComm& device_comm) {
  ginDevComm& out = device_comm.comm;
  char* base = window->base;
  auto* slots = reinterpret_cast<std::uint32_t*>(base + layout.slots_offset);
  std::fill_n(slots, size(), GIN_NO_SLOT);
  for (const int r : connected_ranks(layout.connection)) {
    const Path* path = path_to(r, nullptr);
    slots[r] = path == &direct_ ? slots_[static_cast<std::size_t>(r)] : GIN_PROXY_SLOT;
    if (path == &direct_ && !device_comm.reordering.empty()) slots[r] |= GIN_SLOT_BY_RING;
  }
  out.magic = GIN_API_MAGIC;
  out.version = GIN_VERSION_CODE;
  out.rank = rank();
  out.nRanks = size();
  out.lsaRank = rank() % lsa_size_;
  out.lsaSize = lsa_size_;
  out.ginContextCount = layout.contexts;
  out.ginSignalCount = layout.signals;
  out.ginCounterCount = layout.counters;
  out.ginConnectionCount = layout.uses_gin ? 1 : 0;
  out.worldGinBarrier = layout.world_barrier;
  out.railGinBarrier = layout.rail_barrier;
  out.worldGinBarrierCount = layout.world_barriers;
  out.railGinBarrierCount = layout.rail_barriers;
  out.resourceWindow = window;
  out.strongLegacySignals = layout.strong_legacy ? 1 : 0;
  out.windowCapacity = WindowTable::kCapacity;
  out.trapsOnError = device::settings().gin_on_error == "trap" ? 1 : 0;
  out.windowTable = windows_.entries();
  out.peerSlots = slots;
  out.signalsOffset = layout.signals_offset;
  out.shadowsOffset = layout.shadows_offset;
  out.countersOffset = layout.counters_offset;
  out.signalsPitch = layout.signals_pitch;
  out.countersPitch = layout.counters_pitch;
  out.error = reinterpret_cast<ginErrorWord*>(base);
  out.host = this;
  if (device_comm.proxy == nullptr) return;
  device_comm.proxy->memory().fill(out);
  out.proxy = device_comm.proxy.get();
}

/// Kernels have ended; what they posted is carried to its end first.
void Communicator::forget(std::unique_ptr<DeviceComm> device_comm) {
  const double patience = device::settings().connect_timeout;
  bool over = device_comm->proxy == nullptr || device_comm->proxy->stop(patience);
  for (const auto& reordering : device_comm->reordering) over = over && reordering->is_empty();
  for (const auto& staging : device_comm->staging) over = over && staging->is_empty();
  ginResult_t fine = ginSuccess;
  past_error_.compare_exchange_strong(fine, read_error(*device_comm->comm.error));
  if (grave_ != nullptr) grave_->keep(device_comm->memory);
  if (over) return;
  log::warning(
      "{}requests of a device communicator are still open after {} s; their memory is kept",
      sentence_prefix(), patience);
  device_comm->proxy->detach();
  static_cast<void>(device_comm.release());
}

Status Communicator::destroy_device_comm(const ginDevComm& comm) {
  std::unique_ptr<DeviceComm> gone;
  {
    const std::scoped_lock lock(device_comms_mutex_);
    const auto found = std::ranges::find_if(
        device_comms_, [&](const auto& d) { return d->comm.error == comm.error; });
    if (comm.magic != GIN_API_MAGIC || found == device_comms_.end()) {
      return fail(Code::kInvalidArgument, "not a device communicator of this communicator");
    }
    gone = std::move(*found);
    device_comms_.erase(found);
  }
  const ginWindow_t resources = gone->comm.resourceWindow;
  forget(std::move(gone));
  return windows_.remove(resources);
}

ginResult_t Communicator::async_error() const {
  const std::scoped_lock lock(device_comms_mutex_);
  for (const auto& device_comm : device_comms_) {
    const ginResult_t result = read_error(*device_comm->comm.error);
    if (result != ginSuccess) return result;
  }
  return past_error_.load();
}

void Communicator::abort() {
  const std::scoped_lock lock(device_comms_mutex_);
  ErrorRecord record;
  record.code = ginInternalError;
  record.rank = rank();
  record.operation = ginOpAbort;
  for (const auto& device_comm : device_comms_) set_errors(device_comm->comm, record);
  ginResult_t fine = ginSuccess;
  past_error_.compare_exchange_strong(fine, ginInternalError);
}

}  // namespace gimlet::gin
