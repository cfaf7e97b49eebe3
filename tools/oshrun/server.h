// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_SERVER_H
#define GIMLET_TOOLS_OSHRUN_SERVER_H

#include <string>
#include <vector>

#include "upcall_queue.h"

namespace gimlet::oshrun {

// The job as PMIx sees it: apps in the order of the command line, PEs numbered through them.
struct JobShape {
  std::vector<int> app_sizes;

  [[nodiscard]] int pes() const;
};

// The PMIx server of one job on this host. There is one in a process, and it is never finalized:
// PMIx_server_finalize may wait for ever for libpmix's progress thread (seen after an abort), and
// all it would do is free memory of a process that is about to exit.
class PmixServer {
 public:
  // Starts the server's threads; the signals to be kept from them must be blocked. topology is an
  // hwloc_topology_t that outlives the server and saves it reading its own, or null.
  PmixServer(const std::string& directory, void* topology);

  // Describes the job to the server. Returns when PEs may connect.
  void register_job(const JobShape& shape, UpcallQueue& upcalls);

  // The variables a PE's process needs to connect, as NAME=VALUE.
  [[nodiscard]] std::vector<std::string> environment(int pe) const;

  // Tells the PEs that asked for it that one of them died.
  void notify_death(int pe, int exit_code, bool is_killed);

 private:
  std::string directory_;
  std::string host_;
  std::string name_space_;
};

}  // namespace gimlet::oshrun

#endif
