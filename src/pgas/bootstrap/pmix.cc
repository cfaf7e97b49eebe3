// SPDX-License-Identifier: BSD-3-Clause
#include <pmix.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "device/clock.h"
#include "device/log.h"
#include "pgas/bootstrap/bootstrap.h"

namespace gimlet::pgas {
namespace {

/// Set by PMIx's own thread when a peer of the job died; PMIx gives event handlers no place for a
/// pointer.
std::atomic<int> dead_rank{-1};

/// How often a wait for a blob looks for dead peers.
constexpr std::chrono::milliseconds kSlice{100};
constexpr std::chrono::milliseconds kAskAgain{2};

template <class... Args>
Status pmix_error(pmix_status_t error, fmt::format_string<Args...> format, Args&&... args) {
  return fail(
      error == PMIX_ERR_TIMEOUT || error == PMIX_ERR_NOT_FOUND ? Code::kTimeout : Code::kSystem,
      "{}: {}", fmt::format(format, std::forward<Args>(args)...), PMIx_Error_string(error));
}

pmix_proc_t process(const pmix_proc_t& own, pmix_rank_t rank) {
  pmix_proc_t result;
  PMIX_PROC_CONSTRUCT(&result);
  std::memcpy(result.nspace, own.nspace, sizeof result.nspace);
  result.rank = rank;
  return result;
}

/// The answer of one PMIx_Get_nb: filled by PMIx's thread, shared with it so that neither outlives
/// the other. PMIx's share is `own`, which the callback takes; PMIx drops questions that are open
/// when it is finalized, without a call.
struct Answer {
  std::shared_ptr<Answer> own;
  std::mutex mutex;
  std::condition_variable arrived;
  bool done = false;
  pmix_status_t status = PMIX_SUCCESS;
  std::vector<std::byte> blob;
};

void take_answer(pmix_status_t status, pmix_value_t* value, void* data) {
  const std::shared_ptr<Answer> holder = std::move(static_cast<Answer*>(data)->own);
  Answer& answer = *holder;
  const std::scoped_lock lock(answer.mutex);
  answer.status = status;
  if (status == PMIX_SUCCESS && value != nullptr && value->type == PMIX_BYTE_OBJECT) {
    const auto* bytes = reinterpret_cast<const std::byte*>(value->data.bo.bytes);
    answer.blob.assign(bytes, bytes + value->data.bo.size);
  } else if (status == PMIX_SUCCESS) {
    answer.status = PMIX_ERR_TYPE_MISMATCH;
  }
  answer.done = true;
  answer.arrived.notify_all();
}

void note_death(std::size_t, pmix_status_t, const pmix_proc_t* source, pmix_info_t info[],
                std::size_t count, pmix_info_t*, std::size_t,
                pmix_event_notification_cbfunc_fn_t done, void* data) {
  int rank = source != nullptr ? static_cast<int>(source->rank) : -1;
  for (std::size_t i = 0; i < count; ++i) {
    if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) && info[i].value.type == PMIX_PROC) {
      rank = static_cast<int>(info[i].value.data.proc->rank);
    }
  }
  if (rank >= 0) dead_rank.store(rank, std::memory_order_release);
  if (done != nullptr) done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, data);
}

class Pmix final : public Bootstrap {
 public:
  static Status open(std::unique_ptr<Bootstrap>& out);
  ~Pmix() override;

  const char* name() const override { return "PMIx"; }
  int rank() const override { return static_cast<int>(own_.rank); }
  int size() const override { return size_; }
  const std::vector<int>& node_ranks() const override { return node_ranks_; }

  Status put(const std::string& key, std::span<const std::byte> blob) override;
  Status commit() override;
  Status fence() override;
  Status get(int rank, const std::string& key, double seconds,
             std::vector<std::byte>& blob) override;
  const std::atomic<int>& dead_peer_word() const override { return dead_rank; }
  [[noreturn]] void abort(int status, const std::string& why) override;

 private:
  Status job_size();
  Status local_peers();
  void watch_peers();
  Status ask(int rank, const std::string& key, std::shared_ptr<Answer>& out);
  void forget(int rank, const std::string& key);

  pmix_proc_t own_{};
  int size_ = 0;
  std::vector<int> node_ranks_;
  std::mutex questions_mutex_;
  std::map<std::pair<int, std::string>, std::shared_ptr<Answer>> questions_;
};

Status Pmix::open(std::unique_ptr<Bootstrap>& out) {
  auto pmix = std::make_unique<Pmix>();
  PMIX_PROC_CONSTRUCT(&pmix->own_);
  if (const pmix_status_t error = PMIx_Init(&pmix->own_, nullptr, 0); error != PMIX_SUCCESS) {
    return pmix_error(error, "PMIx_Init failed, although PMIX_NAMESPACE and PMIX_RANK are set");
  }
  GIMLET_TRY(pmix->job_size());
  GIMLET_TRY(pmix->local_peers());
  dead_rank.store(-1, std::memory_order_release);
  pmix->watch_peers();
  out = std::move(pmix);
  return {};
}

Pmix::~Pmix() {
  if (const pmix_status_t error = PMIx_Finalize(nullptr, 0); error != PMIX_SUCCESS) {
    log::warning("PMIx_Finalize failed: {}", PMIx_Error_string(error));
    return;  // its thread may still answer
  }
  for (const auto& [question, answer] : questions_) answer->own.reset();
}

Status Pmix::job_size() {
  const pmix_proc_t job = process(own_, PMIX_RANK_WILDCARD);
  pmix_value_t* value = nullptr;
  const pmix_status_t error = PMIx_Get(&job, PMIX_JOB_SIZE, nullptr, 0, &value);
  if (error != PMIX_SUCCESS)
    return pmix_error(error, "the launcher does not tell the number of PEs");
  const bool usable =
      value->type == PMIX_UINT32 && value->data.uint32 >= 1 && value->data.uint32 < 1u << 30;
  if (usable) size_ = static_cast<int>(value->data.uint32);
  PMIX_VALUE_RELEASE(value);
  if (!usable) return fail(Code::kSystem, "the launcher's number of PEs is not usable");
  return {};
}

/// Which ranks share the node: the launcher's list. Without one this rank is taken to be alone.
Status Pmix::local_peers() {
  const pmix_proc_t job = process(own_, PMIX_RANK_WILDCARD);
  pmix_value_t* value = nullptr;
  std::string list;
  if (PMIx_Get(&job, PMIX_LOCAL_PEERS, nullptr, 0, &value) == PMIX_SUCCESS) {
    if (value->type == PMIX_STRING && value->data.string != nullptr) list = value->data.string;
    PMIX_VALUE_RELEASE(value);
  }
  for (std::string_view rest = list; !rest.empty();) {
    int rank = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
    if (error != std::errc() || rank < 0 || rank >= size_) {
      return fail(Code::kSystem, "the launcher's list of local PEs '{}' can't be read", list);
    }
    node_ranks_.push_back(rank);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (!rest.empty()) rest.remove_prefix(1);
  }
  if (std::ranges::find(node_ranks_, rank()) == node_ranks_.end()) node_ranks_.push_back(rank());
  std::ranges::sort(node_ranks_);
  return {};
}

void Pmix::watch_peers() {
  pmix_status_t codes[] = {PMIX_ERR_PROC_ABORTED, PMIX_ERR_LOST_CONNECTION};
  // Without the event a dead peer is the launcher's to handle: it ends the job.
  (void)PMIx_Register_event_handler(codes, std::size(codes), nullptr, 0, note_death, nullptr,
                                    nullptr);
}

Status Pmix::put(const std::string& key, std::span<const std::byte> blob) {
  pmix_value_t value;
  PMIX_VALUE_CONSTRUCT(&value);
  value.type = PMIX_BYTE_OBJECT;
  value.data.bo.bytes = const_cast<char*>(reinterpret_cast<const char*>(blob.data()));
  value.data.bo.size = blob.size();
  const pmix_status_t error = PMIx_Put(PMIX_GLOBAL, key.c_str(), &value);
  return error == PMIX_SUCCESS ? Status() : pmix_error(error, "publishing {} failed", key);
}

Status Pmix::commit() {
  const pmix_status_t error = PMIx_Commit();
  return error == PMIX_SUCCESS ? Status() : pmix_error(error, "PMIx_Commit failed");
}

Status Pmix::fence() {
  const pmix_proc_t job = process(own_, PMIX_RANK_WILDCARD);
  const pmix_status_t error = PMIx_Fence(&job, 1, nullptr, 0);
  if (error != PMIX_SUCCESS) return pmix_error(error, "PMIx_Fence failed");
  if (const int dead = dead_peer(); dead >= 0) return fail(Code::kRemote, "PE {} died", dead);
  return {};
}

Status Pmix::ask(int rank, const std::string& key, std::shared_ptr<Answer>& out) {
  const std::scoped_lock lock(questions_mutex_);
  std::shared_ptr<Answer>& answer = questions_[{rank, key}];
  out = answer;
  if (answer != nullptr) return {};
  answer = std::make_shared<Answer>();
  out = answer;
  const pmix_proc_t peer = process(own_, static_cast<pmix_rank_t>(rank));
  answer->own = answer;
  const pmix_status_t error =
      PMIx_Get_nb(&peer, key.c_str(), nullptr, 0, take_answer, answer.get());
  if (error == PMIX_SUCCESS) return {};  // take_answer() has the share now
  answer->own.reset();
  questions_.erase({rank, key});
  return pmix_error(error, "asking for {} of PE {} failed", key, rank);
}

Status Pmix::get(int rank, const std::string& key, double seconds, std::vector<std::byte>& blob) {
  const std::uint64_t end = device::now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
  for (;;) {
    std::shared_ptr<Answer> answer;
    GIMLET_TRY(ask(rank, key, answer));
    bool done = false;
    pmix_status_t error = PMIX_SUCCESS;
    {
      std::unique_lock lock(answer->mutex);
      if (!answer->done)
        answer->arrived.wait_for(lock, seconds > 0 ? kSlice : kSlice * 0,
                                 [&] { return answer->done; });
      done = answer->done;
      error = answer->status;
      if (done && error == PMIX_SUCCESS) {
        blob = answer->blob;
        return {};
      }
    }
    if (done) forget(rank, key);
    if (done && error != PMIX_ERR_NOT_FOUND && error != PMIX_ERR_TIMEOUT)
      return pmix_error(error, "{} of PE {} is not there", key, rank);
    if (const int dead = dead_peer(); dead >= 0) return fail(Code::kRemote, "PE {} died", dead);
    if (device::now_ns() >= end) {
      return fail(Code::kTimeout, "PE {} did not publish {} within {} s", rank, key, seconds);
    }
    // A server may answer "not found" or give up before the peer has committed instead of waiting:
    // ask again.
    if (done) std::this_thread::sleep_for(kAskAgain);
  }
}

void Pmix::forget(int rank, const std::string& key) {
  const std::scoped_lock lock(questions_mutex_);
  questions_.erase({rank, key});
}

void Pmix::abort(int status, const std::string& why) {
  // Some launchers take 0 as their own failure code; the process then still leaves with it.
  (void)PMIx_Abort(status, why.empty() ? nullptr : why.c_str(), nullptr, 0);
  ::_exit(status);
}

}  // namespace

Status make_pmix_bootstrap(std::unique_ptr<Bootstrap>& out) {
  return Pmix::open(out);
}

}  // namespace gimlet::pgas
