// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_HELPER_H
#define GIMLET_PGAS_HELPER_H

#include <atomic>
#include <thread>

#include "device/status.h"
#include "device/unique_fd.h"

namespace gimlet::pgas {

class Pe;

/// The one background thread of a PE: sleeps until there is something to serve, so that a PE that
/// computes still answers its peers and an idle job uses no CPU.
///
/// It sleeps on the doorbell of the control area (a futex, which peers of the node can ring) until
/// the transport is started, then on the transport's event descriptor. Rings by this process after
/// that go to `wake_`. The rule against lost wake-ups: look for work after reading the doorbell,
/// and sleep only if the doorbell is still the same; with the transport, sleep only after arm()
/// returned true.
class Helper {
 public:
  explicit Helper(Pe& pe) : pe_(pe) {}
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  Status start();
  /// Joins. The thread holds no token and no lock when it ends.
  void stop();
  /// The transport was started by another thread of this process: sleep on its descriptor from now
  /// on.
  void notice_transport();

 private:
  void run();
  void serve_doorbell();
  void serve_transport();

  Pe& pe_;
  UniqueFd wake_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// Rings the doorbell of a PE of this node.
struct ControlArea;
void ring_doorbell(ControlArea& area);

}  // namespace gimlet::pgas

#endif
