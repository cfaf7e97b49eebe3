// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/ucx_worker.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <ucs/debug/debug.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "device/log.h"

namespace gimlet::pgas::ucx {
namespace {

// How long the sleeping thread leaves the worker to callers that are polling it anyway.
constexpr long kNapNs = 1'000'000;
// The first sleep after an event ends by itself after this long, the next one after twice as long,
// and so on; a sleep after the last one has no end.
constexpr long kFirstDozeNs = 1'000'000;
constexpr long kLastDozeNs = 512'000'000;

// Unless the user says otherwise: System V segments outlive a killed job; CMA needs ptrace rights
// between the PEs, which containers deny, and serves none of our requests.
constexpr const char* kDefaultTls = "^sysv,cma";
constexpr const char* kTlsWithoutMemory = "^sysv,cma,posix";
// What shared memory takes of /dev/shm for a worker, with the settings below.
constexpr std::uint64_t kSharedBytes = 1 << 20;

bool set_by_user(const std::string& name) {
  return ::getenv(("UCX_" + name).c_str()) != nullptr;
}

/// UCX's choice of transports: the user's or ours, without shared memory where there is no room for
/// it.
std::string choose_tls() {
  if (const char* chosen = ::getenv("UCX_TLS"); chosen != nullptr) return chosen;
  struct statvfs shared {};
  if (::statvfs("/dev/shm", &shared) == 0 &&
      std::uint64_t{shared.f_bavail} * shared.f_frsize >= kSharedBytes)
    return kDefaultTls;
  log::debug("ucx: no shared memory, because less than {} bytes are free in /dev/shm",
             kSharedBytes);
  return kTlsWithoutMemory;
}

/// Whether the list `tls` (the form of UCX_TLS) lets the shared memory transport `name` in.
bool admits(std::string_view tls, std::string_view name) {
  const bool all_but = tls.starts_with('^');
  if (all_but) tls.remove_prefix(1);
  bool named = false;
  while (!tls.empty()) {
    const std::string_view word = tls.substr(0, tls.find(','));
    named = named || word == name || word == "all" || word == "sm" || word == "shm" || word == "mm";
    tls.remove_prefix(std::min(tls.size(), word.size() + 1));
  }
  return named != all_but;
}

/// A setting of UCX's shared memory transports. The user can give it for one or for all of them.
struct MemorySetting {
  const char* name;
  const char* value;
};

constexpr MemorySetting kMemorySettings[] = {
    // Endpoints with error handling are served only when told so.
    {"ERROR_HANDLING", "y"},
    // Receive buffers come in chunks of this many, in /dev/shm, at 8 KiB each; the 64 slots of the
    // queue and the message being read need one each, and we never keep any.
    {"RX_BUFS_GROW", "72"},
};

void modify(ucp_config_t* config, const MemorySetting& setting) {
  for (const char* transport : {"MM_", "POSIX_", "SYSV_"})
    if (set_by_user(std::string(transport) + setting.name)) return;
  // A release of UCX without the setting has nothing that it would change.
  (void)ucp_config_modify(config, (std::string("MM_") + setting.name).c_str(), setting.value);
}

// UCX installs crash handlers when it is loaded, before anybody could ask it not to; a program's
// own crash must stay its own.
void release_crash_signals() {
  if (::getenv("UCX_HANDLE_ERRORS") != nullptr || ::getenv("UCX_ERROR_SIGNALS") != nullptr) return;
  Dl_info ucs{};
  if (::dladdr(reinterpret_cast<void*>(&ucs_debug_disable_signal), &ucs) == 0) return;
  for (const int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
    struct sigaction current {};
    Dl_info handler{};
    if (::sigaction(number, nullptr, &current) != 0) continue;
    if (::dladdr(reinterpret_cast<void*>(current.sa_sigaction), &handler) == 0) continue;
    if (handler.dli_fbase == ucs.dli_fbase) ucs_debug_disable_signal(number);
  }
}

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

Status ucx_error(ucs_status_t status, const char* doing) {
  return fail(Code::kSystem, "UCX could not {}: {}", doing, ucs_status_string(status));
}

}  // namespace

Worker::~Worker() {
  close(true);
}

void Worker::close(bool is_clean) {
  if (worker_ != nullptr) ucp_worker_destroy(std::exchange(worker_, nullptr));
  for (ucp_mem_h memory : mapped_) ucp_mem_unmap(context_, memory);
  mapped_.clear();
  ucp_context_h context = std::exchange(context_, nullptr);
  if (context != nullptr && is_clean) ucp_cleanup(context);
}

Status Worker::open(std::span<const LocalSegment> segments) {
  release_crash_signals();
  GIMLET_TRY(open_context());
  GIMLET_TRY(open_worker());
  GIMLET_TRY(open_events());
  return map_segments(segments);
}

Status Worker::open_context() {
  ucp_config_t* config = nullptr;
  if (const ucs_status_t status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return ucx_error(status, "read its settings");
  const std::string tls = choose_tls();
  (void)ucp_config_modify(config, "TLS", tls.c_str());
  // UCX warns about settings of transports that it doesn't open.
  if (admits(tls, "posix") || admits(tls, "sysv")) {
    for (const MemorySetting& setting : kMemorySettings) modify(config, setting);
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 0;
  const ucs_status_t status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  if (status == UCS_OK) return {};
  context_ = nullptr;
  return fail(Code::kSystem, "UCX could not start with UCX_TLS= {} : {}", tls,
              ucs_status_string(status));
}

Status Worker::open_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t made = UCS_OK;
  {
    // UCX's own thread must not take the program's signals.
    const SignalsBlocked blocked;
    made = ucp_worker_create(context_, &params, &worker_);
  }
  if (made != UCS_OK) {
    worker_ = nullptr;
    return ucx_error(made, "make a worker");
  }
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  if (const ucs_status_t status = ucp_worker_query(worker_, &attributes); status != UCS_OK)
    return ucx_error(status, "query its worker");
  // UCX promises that a header of this size shares one fragment with its own headers; ours plus the
  // payload stay within it.
  if (attributes.max_am_header < 2 * sizeof(MessageHeader))
    return fail(Code::kSystem, "UCX carries active messages of {} bytes only, {} are needed",
                attributes.max_am_header, 2 * sizeof(MessageHeader));
  message_limit_ = attributes.max_am_header - sizeof(MessageHeader);
  return {};
}

Status Worker::open_events() {
  if (const ucs_status_t status = ucp_worker_get_efd(worker_, &worker_events_); status != UCS_OK)
    return ucx_error(status, "give a wake-up descriptor");
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return fail_errno(errno, "epoll_create1");
  timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer_.valid()) return fail_errno(errno, "timerfd_create");
  for (const int fd : {worker_events_, timer_.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return fail_errno(errno, "epoll_ctl");
  }
  return {};
}

Status Worker::map_segments(std::span<const LocalSegment> segments) {
  for (const LocalSegment& segment : segments) {
    ucp_mem_h memory = nullptr;
    GIMLET_TRY(map(segment.base, segment.size, memory));
    mapped_.push_back(memory);
  }
  // UCX registers an empty region nowhere.
  ucp_mem_h nothing = nullptr;
  GIMLET_TRY(map(nullptr, 0, nothing));
  Status packed = pack(nothing, empty_key_);
  ucp_mem_unmap(context_, nothing);
  return packed;
}

Status Worker::map(std::byte* base, std::size_t bytes, ucp_mem_h& memory) {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  params.address = base;
  params.length = bytes;
  params.flags = UCP_MEM_MAP_NONBLOCK;  // a big heap is not populated by start-up
  const ucs_status_t status = ucp_mem_map(context_, &params, &memory);
  if (status == UCS_OK) return {};
  return fail(Code::kSystem, "UCX could not register {} bytes of symmetric memory: {}", bytes,
              ucs_status_string(status));
}

Status Worker::pack(ucp_mem_h memory, std::vector<std::byte>& key) const {
  void* packed = nullptr;
  std::size_t length = 0;
  if (const ucs_status_t status = ucp_rkey_pack(context_, memory, &packed, &length);
      status != UCS_OK)
    return ucx_error(status, "pack a remote key");
  const auto* first = static_cast<const std::byte*>(packed);
  key.assign(first, first + length);
  ucp_rkey_buffer_release(packed);
  return {};
}

Status Worker::describe(std::span<const LocalSegment> segments, Blob& blob) const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  if (const ucs_status_t status = ucp_worker_get_address(worker_, &address, &length);
      status != UCS_OK)
    return ucx_error(status, "give its address");
  const auto* first = reinterpret_cast<const std::byte*>(address);
  blob.worker_address.assign(first, first + length);
  ucp_worker_release_address(worker_, address);

  for (std::size_t i = 0; i < segments.size(); ++i) {
    RemoteSegment& described = blob.segments.emplace_back();
    described.base = reinterpret_cast<std::uint64_t>(segments[i].base);
    described.size = segments[i].size;
    GIMLET_TRY(pack(mapped_[i], described.key));
  }
  return {};
}

bool Worker::watch() {
  if (napping_) {
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, worker_events_, &event);
    napping_ = false;
  }
  std::uint64_t times = 0;
  const bool undisturbed = ::read(timer_.get(), &times, sizeof times) == sizeof times;
  if (!undisturbed) {
    doze_ns_ = kFirstDozeNs;
  } else {
    doze_ns_ = doze_ns_ < kLastDozeNs ? 2 * doze_ns_ : 0;
  }
  set_timer(doze_ns_);
  return ucp_worker_arm(worker_) == UCS_OK;
}

void Worker::nap() {
  doze_ns_ = kFirstDozeNs;
  set_timer(kNapNs);
  if (napping_) return;
  epoll_event nothing{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, worker_events_, &nothing);
  napping_ = true;
}

/// 0 ns: never.
void Worker::set_timer(long ns) {
  itimerspec once{};
  once.it_value.tv_nsec = ns;
  ::timerfd_settime(timer_.get(), 0, &once, nullptr);
}

}  // namespace gimlet::pgas::ucx
