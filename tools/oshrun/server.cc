// SPDX-License-Identifier: BSD-3-Clause
#include "server.h"

#include <pmix.h>
#include <pmix_server.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>

#include "launch_error.h"
#include "pmix_info.h"

namespace gimlet::oshrun {
namespace {

// How long libpmix may take to file the job: it needs milliseconds; without a bound a defect there
// would be a launcher that hangs without a word.
constexpr std::chrono::seconds kRegistrationLimit(60);

// Counts callbacks of asynchronous PMIx calls. Held through shared_ptr copies, so that a callback
// later than the limit still finds it.
class Completions {
 public:
  void add(pmix_status_t status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED) status_ = status;
    changed_.notify_one();
  }

  // Waits for count callbacks in all.
  pmix_status_t wait(std::size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool all = changed_.wait_for(lock, kRegistrationLimit, [&] { return count_ >= count; });
    return all ? status_ : PMIX_ERR_TIMEOUT;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_ = 0;
  pmix_status_t status_ = PMIX_SUCCESS;
};

using SharedCompletions = std::shared_ptr<Completions>;

void count_completion(pmix_status_t status, void* data) {
  const std::unique_ptr<SharedCompletions> completions(static_cast<SharedCompletions*>(data));
  (*completions)->add(status);
}

// Calls an asynchronous PMIx function that takes (callback, data) and counts its completion, now
// or from the callback.
template <typename Call>
void call_counted(const SharedCompletions& completions, Call&& call) {
  auto data = std::make_unique<SharedCompletions>(completions);
  const pmix_status_t status = call(count_completion, data.get());
  if (status == PMIX_SUCCESS) {
    static_cast<void>(data.release());  // the callback owns it
  } else {
    completions->add(status);
  }
}

void check(pmix_status_t status, const char* what) {
  if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED) return;
  fail(kExitLauncher, "{} failed: {}", what, PMIx_Error_string(status));
}

// The upcalls of libpmix. They run in its progress thread, record, and return. server_object is
// the UpcallQueue given when the PE was registered.

pmix_status_t push(void* server_object, Upcall upcall) {
  if (server_object == nullptr) return PMIX_ERR_NOT_FOUND;
  static_cast<UpcallQueue*>(server_object)->push(std::move(upcall));
  return PMIX_OPERATION_SUCCEEDED;
}

int pe_of(const pmix_proc_t* proc) {
  return static_cast<int>(proc->rank);
}

pmix_status_t on_connected(const pmix_proc_t* proc, void* server_object, pmix_info_t*, size_t,
                           pmix_op_cbfunc_t, void*) {
  return push(server_object, {Upcall::Kind::kConnected, pe_of(proc), 0, {}});
}

pmix_status_t on_finalized(const pmix_proc_t* proc, void* server_object, pmix_op_cbfunc_t, void*) {
  return push(server_object, {Upcall::Kind::kFinalized, pe_of(proc), 0, {}});
}

pmix_status_t on_abort(const pmix_proc_t* proc, void* server_object, int status, const char* text,
                       pmix_proc_t*, size_t, pmix_op_cbfunc_t callback, void* data) {
  // Recorded before the PE is answered: when its exit is reaped the record is there.
  push(server_object, {Upcall::Kind::kAborted, pe_of(proc), status, text != nullptr ? text : ""});
  if (callback != nullptr) callback(PMIX_SUCCESS, data);
  return PMIX_SUCCESS;
}

// Called when a fence completes because a participant died; otherwise fences of one host stay
// inside libpmix. What was collected here is all there is.
pmix_status_t on_fence(const pmix_proc_t*, size_t, const pmix_info_t*, size_t, char* bytes,
                       size_t size, pmix_modex_cbfunc_t callback, void* data) {
  if (callback != nullptr) callback(PMIX_SUCCESS, bytes, size, data, nullptr, nullptr);
  return PMIX_SUCCESS;
}

// There is no other host that could hold what libpmix does not have.
pmix_status_t on_direct_modex(const pmix_proc_t*, const pmix_info_t*, size_t, pmix_modex_cbfunc_t,
                              void*) {
  return PMIX_ERR_NOT_FOUND;
}

// Events between PEs of one host are delivered by libpmix itself; the host has nothing to add.
pmix_status_t on_register_events(pmix_status_t*, size_t, const pmix_info_t*, size_t,
                                 pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t on_deregister_events(pmix_status_t*, size_t, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t on_notify_event(pmix_status_t, const pmix_proc_t*, pmix_data_range_t, pmix_info_t*,
                              size_t, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

// libpmix keeps the pointer.
pmix_server_module_t& server_module() {
  static pmix_server_module_t module = [] {
    pmix_server_module_t filled{};
    filled.client_connected2 = on_connected;
    filled.client_finalized = on_finalized;
    filled.abort = on_abort;
    filled.fence_nb = on_fence;
    filled.direct_modex = on_direct_modex;
    filled.register_events = on_register_events;
    filled.deregister_events = on_deregister_events;
    filled.notify_event = on_notify_event;
    return filled;
  }();
  return module;
}

std::string host_name() {
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  return name;
}

std::uint32_t unsigned_of(int number) {
  return static_cast<std::uint32_t>(number);
}

PmixRank rank_of(int pe) {
  return {static_cast<pmix_rank_t>(pe)};
}

std::string comma_list(int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + std::to_string(i);
  return list;
}

void add_maps(PmixInfo& job, const std::string& host, const std::string& peers) {
  char* map = nullptr;
  check(PMIx_generate_regex(host.c_str(), &map), "PMIx_generate_regex");
  job.add_map(PMIX_NODE_MAP, map);
  free(map);
  check(PMIx_generate_ppn(peers.c_str(), &map), "PMIx_generate_ppn");
  job.add_map(PMIX_PROC_MAP, map);
  free(map);
}

void add_app(PmixInfo& job, int app, int first_pe, int size) {
  PmixInfo members;
  members.add(PMIX_APPNUM, unsigned_of(app));
  members.add(PMIX_APP_SIZE, unsigned_of(size));
  members.add(PMIX_APPLDR, rank_of(first_pe));
  job.add(PMIX_APP_INFO_ARRAY, members);
}

void add_pe(PmixInfo& job, int pe, int app, int app_rank, const std::string& host,
            const std::string& directory) {
  PmixInfo members;
  members.add(PMIX_RANK, rank_of(pe));  // libpmix reads the rank from the first member
  members.add(PMIX_APPNUM, unsigned_of(app));
  members.add(PMIX_GLOBAL_RANK, rank_of(pe));
  members.add(PMIX_APP_RANK, rank_of(app_rank));
  members.add(PMIX_LOCAL_RANK, static_cast<std::uint16_t>(pe));
  members.add(PMIX_NODE_RANK, static_cast<std::uint16_t>(pe));
  members.add(PMIX_NODEID, std::uint32_t{0});
  members.add(PMIX_HOSTNAME, host);
  members.add(PMIX_PROCDIR, fmt::format("{}/{}", directory, pe));
  job.add(PMIX_PROC_INFO_ARRAY, members);
}

// Everything that Open MPI and libpmix's own tables want to find; a smaller set makes clients fail.
void describe_job(PmixInfo& job, const JobShape& shape, const std::string& name_space,
                  const std::string& host, const std::string& directory) {
  const int pes = shape.pes();
  const std::string peers = comma_list(pes);
  for (const char* key :
       {PMIX_JOB_SIZE, PMIX_UNIV_SIZE, PMIX_MAX_PROCS, PMIX_LOCAL_SIZE, PMIX_NODE_SIZE}) {
    job.add(key, unsigned_of(pes));
  }
  job.add(PMIX_NUM_NODES, std::uint32_t{1});
  job.add(PMIX_NODEID, std::uint32_t{0});
  job.add(PMIX_JOB_NUM_APPS, static_cast<std::uint32_t>(shape.app_sizes.size()));
  job.add(PMIX_LOCAL_PEERS, peers);
  job.add(PMIX_LOCALLDR, rank_of(0));
  job.add(PMIX_JOBID, name_space);
  job.add(PMIX_SPAWNED, false);
  job.add(PMIX_NSDIR, directory);
  job.add(PMIX_TMPDIR, directory);
  add_maps(job, host, peers);
  if (shape.app_sizes.size() == 1) {
    job.add(PMIX_APP_SIZE, unsigned_of(pes));
    job.add(PMIX_APPLDR, rank_of(0));
  }

  int first_pe = 0;
  for (int app = 0; app < static_cast<int>(shape.app_sizes.size()); ++app) {
    const int size = shape.app_sizes[static_cast<std::size_t>(app)];
    if (shape.app_sizes.size() > 1) add_app(job, app, first_pe, size);
    for (int i = 0; i < size; ++i) add_pe(job, first_pe + i, app, i, host, directory);
    first_pe += size;
  }
}

}  // namespace

int JobShape::pes() const {
  return std::accumulate(app_sizes.begin(), app_sizes.end(), 0);
}

PmixServer::PmixServer(const std::string& directory, void* topology)
    : directory_(directory), host_(host_name()), name_space_(fmt::format("oshrun-{}", getpid())) {
  // The other store keeps its locks in memory shared with the PEs: a PE killed while it holds one
  // would stop the server.
  setenv("PMIX_MCA_gds", "hash", 1);

  PmixInfo info;
  info.add(PMIX_SERVER_NSPACE, "server-" + name_space_);
  info.add(PMIX_SERVER_RANK, rank_of(0));
  info.add(PMIX_SERVER_TMPDIR, directory);
  info.add(PMIX_SYSTEM_TMPDIR, directory);
  info.add(PMIX_SERVER_TOOL_SUPPORT, false);
  info.add(PMIX_HOSTNAME, host_);
  // By the older of the two keys: libpmix takes the pointer as it is and never frees it.
  if (topology != nullptr) info.add_pointer(PMIX_TOPOLOGY, topology);
  check(PMIx_server_init(&server_module(), info.data(), info.size()), "PMIx_server_init");
  unsetenv("PMIX_MCA_gds");
}

void PmixServer::register_job(const JobShape& shape, UpcallQueue& upcalls) {
  PmixInfo job;
  describe_job(job, shape, name_space_, host_, directory_);
  const int pes = shape.pes();
  const auto completions = std::make_shared<Completions>();
  call_counted(completions, [&](pmix_op_cbfunc_t callback, void* data) {
    return PMIx_server_register_nspace(name_space_.c_str(), pes, job.data(), job.size(), callback,
                                       data);
  });
  // Not awaited one by one: the progress thread takes them in order.
  for (int pe = 0; pe < pes; ++pe) {
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, name_space_.c_str(), static_cast<pmix_rank_t>(pe));
    call_counted(completions, [&](pmix_op_cbfunc_t callback, void* data) {
      return PMIx_server_register_client(&proc, geteuid(), getegid(), &upcalls, callback, data);
    });
  }
  check(completions->wait(static_cast<std::size_t>(pes) + 1), "PMIx server registration");
}

std::vector<std::string> PmixServer::environment(int pe) const {
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, name_space_.c_str(), static_cast<pmix_rank_t>(pe));
  // libpmix wants an array it can grow, with at least its end in it.
  char** entries = static_cast<char**>(calloc(1, sizeof(char*)));
  check(PMIx_server_setup_fork(&proc, &entries), "PMIx_server_setup_fork");
  std::vector<std::string> variables;
  for (char** entry = entries; entry != nullptr && *entry != nullptr; ++entry) {
    variables.emplace_back(*entry);
    free(*entry);
  }
  free(entries);
  return variables;
}

void PmixServer::notify_death(int pe, int exit_code, bool is_killed) {
  pmix_proc_t dead;
  PMIX_LOAD_PROCID(&dead, name_space_.c_str(), static_cast<pmix_rank_t>(pe));
  // libpmix reads both until the callback.
  struct Notice {
    PmixInfo info;
    pmix_proc_t source;
  };
  auto notice = std::make_unique<Notice>();
  notice->source = dead;
  notice->info.add(PMIX_EVENT_NON_DEFAULT, true);
  notice->info.add(PMIX_EVENT_AFFECTED_PROC, notice->source);
  notice->info.add(PMIX_EXIT_CODE, exit_code);
  const pmix_status_t code = is_killed ? PMIX_ERR_PROC_ABORTED : PMIX_PROC_TERMINATED;
  const auto discard = [](pmix_status_t, void* data) { delete static_cast<Notice*>(data); };
  const pmix_status_t status =
      PMIx_Notify_event(code, &notice->source, PMIX_RANGE_NAMESPACE, notice->info.data(),
                        notice->info.size(), discard, notice.get());
  if (status == PMIX_SUCCESS) static_cast<void>(notice.release());
}

}  // namespace gimlet::oshrun
