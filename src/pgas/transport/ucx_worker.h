// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_UCX_WORKER_H
#define GIMLET_PGAS_TRANSPORT_UCX_WORKER_H

#include <ucp/api/ucp.h>

#include <cstddef>
#include <span>
#include <vector>

#include "device/status.h"
#include "device/unique_fd.h"
#include "pgas/transport/transport.h"
#include "pgas/transport/ucx_wire.h"

namespace gimlet::pgas::ucx {

/// The service worker of this PE with its UCP context and the registrations of the segments.
///
/// Thread mode: UCP's SERIALIZED. The transport's token already keeps two threads from being
/// inside at once, so UCP's own locks (MULTI) would be paid on every call for nothing; SINGLE would
/// promise one fixed thread, which callers and helper are not.
class Worker {
 public:
  Worker() = default;
  ~Worker();
  /// Gives everything to UCX back; it may still complete requests on the way.
  /// `is_clean`: no request was given up. After one was, UCX 1.13 with its newer protocols may end
  /// the process when its context goes, which then stays.
  void close(bool is_clean);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Status open(std::span<const LocalSegment> segments);

  ucp_worker_h handle() const { return worker_; }
  /// Payload that surely travels in one piece with a header, so that messages of an endpoint are
  /// handled in the order they were sent.
  std::size_t message_limit() const { return message_limit_; }
  /// The packed key of memory that no network reaches without its owner's CPU.
  const std::vector<std::byte>& empty_key() const { return empty_key_; }
  Status describe(std::span<const LocalSegment> segments, Blob& blob) const;

  /// Wake-up, for one sleeping thread. event_fd() is readable when the worker has events, when the
  /// nap is over, and for a while after an event also from time to time: UCX can lose the wake-up
  /// by the first messages of a network. It stops watching that network when one arrives and looks
  /// again at each progress; if the next one is just being written it goes on so, but tells nobody
  /// that it waits for another progress.
  int event_fd() const { return epoll_.get(); }
  /// Readies the worker's events. False: there is work, progress first. With the token held.
  bool watch();
  /// The next sleep ignores the worker and lasts kNapNs.
  void nap();
  void wake() { ucp_worker_signal(worker_); }

 private:
  Status open_context();
  Status open_worker();
  Status open_events();
  Status map_segments(std::span<const LocalSegment> segments);
  Status map(std::byte* base, std::size_t bytes, ucp_mem_h& memory);
  Status pack(ucp_mem_h memory, std::vector<std::byte>& key) const;
  void set_timer(long ns);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<ucp_mem_h> mapped_;
  std::vector<std::byte> empty_key_;
  std::size_t message_limit_ = 0;
  UniqueFd epoll_;
  UniqueFd timer_;
  int worker_events_ = -1;  // owned by worker_
  bool napping_ = false;
  long doze_ns_ = 0;  // the longest time that the present sleep lasts; 0: it has no end
};

}  // namespace gimlet::pgas::ucx

#endif
