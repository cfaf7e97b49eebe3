// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_COMMUNICATOR_H
#define GIMLET_GIN_COMMUNICATOR_H

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/status.h"
#include "gin/comm.h"
#include "gin/error_word.h"
#include "gin/path/direct/direct_path.h"
#include "gin/path/proxy/proxies.h"
#include "gin/path/proxy/proxy_path.h"
#include "gin/path/proxy/reordering_carrier.h"
#include "gin/resource_layout.h"
#include "gin/wait_report.h"
#include "gin/window_table.h"
#include "pgas/group.h"
#include "pgas/transport/staging_carrier.h"

namespace gimlet::gin {

/// Memory that ranks of one process may still reach after its owner is done with it: in other
/// processes a mapping keeps it alive, here this does, until the last rank is gone.
class SharedGrave {
 public:
  void keep(std::shared_ptr<const device::Memory> memory);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const device::Memory>> memory_;
};

/// A group of ranks with windows and device communicators: one rank's side of it.
///
/// Calls marked collective come from one thread of each rank, in the same order; when they fail on
/// one rank they fail on all. async_error() and abort() are safe from any thread.
class Communicator {
 public:
  /// What sentences call a member: a PE of the job, or a rank among threads.
  enum class Members : unsigned char { kPes, kThreads };

  /// Over any group. Collective.
  static Status over(std::unique_ptr<pgas::Group> group, Members members,
                     std::unique_ptr<Communicator>& out);
  /// Over SHMEM_TEAM_WORLD. Collective.
  static Status over_world(std::unique_ptr<Communicator>& out);
  /// Ranks that are threads of this process. Not collective: one thread makes all.
  static Status over_threads(int ranks, std::vector<std::unique_ptr<Communicator>>& out);
  ~Communicator();

  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }
  int lsa_size() const { return lsa_size_; }
  ginTeam_t world_team() const { return {size(), rank(), 1}; }
  ginTeam_t lsa_team() const { return {lsa_size_, rank() % lsa_size_, 1}; }
  ginTeam_t rail_team() const { return {size() / lsa_size_, rank() / lsa_size_, lsa_size_}; }
  /// True when device code reaches all ranks of `connection`. Otherwise `why_not` says which not.
  bool reaches(ginConnectionType_t connection, std::string* why_not) const;
  /// True when device code reaches some of the ranks of `connection` through a proxy.
  bool needs_proxy(ginConnectionType_t connection) const;

  /// Name of the path that device code takes to a rank; "none" where there is none.
  Status path_name(int rank, const char*& name) const;

  /// Collective.
  Status register_window(void* buffer, std::size_t bytes, int flags, ginWindow_t& handle);
  Status deregister_window(ginWindow_t handle);
  Status user_pointer(ginWindow_t handle, void*& pointer) const;

  /// Collective.
  Status create_device_comm(const ginDevCommRequirements_t* requirements, ginDevComm& out);
  Status destroy_device_comm(const ginDevComm& comm);

  /// First error of any device communicator so far.
  ginResult_t async_error() const;
  void abort();

  /// For sentences: "PE" or "rank", and what stands before a sentence about this rank.
  const char* rank_word() const { return members_ == Members::kPes ? "PE" : "rank"; }
  std::string sentence_prefix() const;
  int dead_rank() const { return group_->dead_rank(); }
  ReportBudget& report_budget() { return report_budget_; }

 private:
  struct DeviceComm {
    std::shared_ptr<const device::Memory> memory;
    ginDevComm comm{};
    std::vector<std::unique_ptr<ReorderingCarrier>> reordering;  // by proxy thread, if wanted
    std::vector<std::unique_ptr<pgas::StagingCarrier>> staging;  // the same, above those
    std::unique_ptr<Proxies> proxy;                              // null: all peers are direct
  };

  Communicator(std::unique_ptr<pgas::Group> group, Members members);
  Status open();
  Status settle_reach();
  Status settle_proxy();
  bool wants_proxy() const;
  const Path* path_to(int rank, std::string* why_not) const;
  Status agree(Status mine, const char* what);
  Status offer(std::byte* base, std::size_t bytes, const device::Memory& memory, Window& window);
  Status add_window(Window window, const std::vector<ginPeerMemory>& by_rank, int flags,
                    ginWindow_t& handle);
  std::vector<int> connected_ranks(ginConnectionType_t connection) const;
  Status prepare(const ginDevCommRequirements_t* requirements, ResourceLayout& layout,
                 std::shared_ptr<const device::Memory>& memory);
  Status compare(const Status& mine, const ResourceLayout& layout);
  Status open_proxy(const ResourceLayout& layout, std::uint32_t queue_depth,
                    DeviceComm& device_comm);
  std::vector<pgas::Carrier*> carriers_of(std::uint32_t threads, DeviceComm& device_comm);
  Status stage(std::vector<pgas::Carrier*>& carriers, DeviceComm& device_comm);
  std::unique_ptr<ReorderingCarrier> make_reordering() const;
  Status start_proxy(const ResourceLayout& layout, ginWindow_t resources, DeviceComm& device_comm);
  void fail_device_comm(const ginDevComm& comm, const ErrorRecord& record,
                        const std::string& sentence);
  void fill(const ResourceLayout& layout, ginWindow_t window, DeviceComm& device_comm);
  void forget(std::unique_ptr<DeviceComm> device_comm);

  std::unique_ptr<pgas::Group> group_;
  std::shared_ptr<SharedGrave> grave_;  // null: ranks are processes
  DirectPath direct_;
  ProxyPath proxy_;
  std::string why_no_proxy_;
  bool has_proxied_ = false;  // the same on all ranks: some rank reaches another through a proxy
  const Members members_;
  int lsa_size_ = 1;
  std::vector<std::uint32_t> slots_;  // by rank
  std::uint32_t slot_count_ = 0;
  WindowTable windows_;
  mutable std::mutex device_comms_mutex_;
  std::vector<std::unique_ptr<DeviceComm>> device_comms_;
  std::atomic<ginResult_t> past_error_{ginSuccess};  // of destroyed device communicators
  ReportBudget report_budget_;
  std::uint64_t next_seed_ = 0;  // of the order of operations; 0: they are not reordered
};

}  // namespace gimlet::gin

#endif
