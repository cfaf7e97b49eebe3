// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_BOOTSTRAP_BOOTSTRAP_H
#define GIMLET_PGAS_BOOTSTRAP_BOOTSTRAP_H

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/status.h"

namespace gimlet::pgas {

/// How the PEs of a job find each other before they share memory: numbers, small blobs, a fence, an
/// end.
///
/// Rules: a key is put once and never changed (launchers disagree on what a second put means). A
/// fence that returns ok may lack a dead peer: callers look at dead_peer() afterwards. Every get is
/// bounded in time. All calls but abort() and dead_peer() come from one thread at a time.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  virtual const char* name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Ranks that the launcher placed on this node, ascending, this rank included.
  virtual const std::vector<int>& node_ranks() const = 0;

  /// Publishes a blob of this rank; peers can get it once commit() returned.
  virtual Status put(const std::string& key, std::span<const std::byte> blob) = 0;
  virtual Status commit() = 0;
  /// Returns when every living rank has called it. Blobs committed before are then available.
  virtual Status fence() = 0;
  /// Waits until `rank` has committed `key`, at most `seconds`.
  virtual Status get(int rank, const std::string& key, double seconds,
                     std::vector<std::byte>& blob) = 0;

  /// A rank that is known to have died, or -1. Safe from any thread.
  int dead_peer() const { return dead_peer_word().load(std::memory_order_acquire); }
  /// Where that stands, for those who look at it when the bootstrap may have gone: it stays.
  virtual const std::atomic<int>& dead_peer_word() const = 0;
  /// Ends all ranks; the launcher exits with `status`. Safe from any thread, in any state.
  [[noreturn]] virtual void abort(int status, const std::string& why) = 0;
};

/// The bootstrap of this process: PMIx when a launcher set PMIX_NAMESPACE and PMIX_RANK, else one
/// PE alone. Without the two variables PMIx is never called, since a failed PMIx_Init breaks a
/// later MPI_Init.
Status make_bootstrap(std::unique_ptr<Bootstrap>& out);
Status make_pmix_bootstrap(std::unique_ptr<Bootstrap>& out);
std::unique_ptr<Bootstrap> make_single_bootstrap();

}  // namespace gimlet::pgas

#endif
