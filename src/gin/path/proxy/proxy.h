// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_PROXY_PROXY_H
#define GIMLET_GIN_PATH_PROXY_PROXY_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "device/bell.h"
#include "device/placement.h"
#include "gin/error_word.h"
#include "gin/impl/tables.h"
#include "gin/path/proxy/engine_counters.h"
#include "gin/path/proxy/heard_error.h"
#include "gin/path/proxy/open_requests.h"
#include "gin/path/proxy/ring_consumer.h"
#include "gin/path/proxy/ring_memory.h"
#include "pgas/transport/carrier.h"

namespace gimlet::gin {

/// One context of a device communicator as its proxy sees it.
struct ProxiedContext {
  /// How many requests may wait for room in their lanes before the ring stops.
  static constexpr std::uint32_t kMostQueued = 256;

  ProxiedContext(std::uint32_t number, ginRing& ring, std::size_t ranks)
      : index(number),
        consumer(ring),
        oldest(ring.oldest),
        results(ring.results),
        bounces(ring.bounces),
        lanes(ranks) {}

  const std::uint32_t index;
  RingConsumer consumer;
  std::uint64_t* oldest;  // by peer, for device code
  ginRingResult* results;
  ginRingBounces* bounces;  // null: none
  NumberedList<&OpenRequest::in_context> open;
  std::uint32_t queued = 0;
  std::uint64_t published_consumed = 0;
  std::uint64_t published_done = 0;
  std::uint64_t* counters = nullptr;         // written by the proxy only
  std::vector<std::unique_ptr<Lane>> lanes;  // by peer, made at first use
};

/// A thread that carries the requests of device code to peers that loads and stores don't reach,
/// for some contexts of a device communicator; proxies.h says what it shares with others.
///
/// It takes what is ready in the rings, posts it to the carrier in the order of each lane, moves
/// the carrier, and publishes what is complete, for a batch at a time. It never waits for one peer:
/// a lane whose requests find no room queues them, and only when a context has too many of those
/// does its ring stop. Incoming traffic needs nothing of that.
///
/// Ownership: everything but the list of completed requests, the bell and the flags belongs to the
/// thread. The carrier completes a request on any thread, which puts it into that list.
///
/// Rest: after 200 us without work it sleeps on its bell, which the writers of slots and
/// completions ring when they see that it is parked.
///
/// Place: on the NUMA node of the thread that made the rings, on any cpu there that the process may
/// use, though that thread is bound to one.
///
/// Failure: whatever the carrier or a target refuses sets the communicator's error word; the thread
/// watches that word and drops everything from then on. The first one tells what listeners heard
/// of, and once the peers.
class Proxy {
 public:
  /// What a rank tells the others, so that they can raise signals and send it notes.
  struct Address {
    pgas::SegmentNumber signals = 0;
    std::uint64_t signals_offset = 0;
    pgas::ListenerNumber listener = 0;
  };
  /// Reports a failure of this communicator: sets its error words, with one sentence. From any
  /// thread.
  using Fail = std::function<void(const ErrorRecord& record, const std::string& sentence)>;
  struct Setup {
    std::vector<pgas::Carrier*> carriers;  // by thread, perhaps the same for all
    int rank = 0;
    int ranks = 1;
    std::vector<int> connected;   // ranks, by whatever path
    std::vector<bool> is_mapped;  // by rank: the carrier calls its parts by the numbers of windows
    const ginWindowEntry* windows = nullptr;
    std::uint64_t signals_pitch = 0;
    std::uint64_t counters_pitch = 0;
    ginErrorWord* error = nullptr;
    std::function<std::string(const ginFault& fault)> describe;
    Fail fail;
  };

  /// Of all proxies of a device communicator.
  struct Common {
    Setup setup;
    std::unique_ptr<RingMemory> memory;
    std::uint32_t contexts_each = 0;
    device::Placement placement;
    std::vector<Address> peers;
    std::atomic<bool> is_started{false};  // refusals and notes before that are a stranger's
    std::atomic<bool> stopping{false};
    std::atomic<bool> abandoned{false};
    HeardError heard;

    /// Tells what a listener heard of, if that has not been done. Not while a carrier is inside.
    bool tell_heard();
  };

  /// `number`: of this thread; says which contexts and which carrier it has.
  Proxy(Common& common, std::uint32_t number);
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  pgas::Carrier& carrier() const { return carrier_; }
  /// Who hears of what targets refuse of this thread's requests.
  std::optional<pgas::ListenerNumber> listener() const { return listener_; }
  void set_listener(std::optional<pgas::ListenerNumber> number) { listener_ = number; }
  const EngineCounters& counters() const { return counters_; }
  Status start();
  bool is_running() const { return thread_.joinable() && !ended_.load(std::memory_order_acquire); }
  /// After stopping or abandoned was set: waits for the end of the thread. False: requests are
  /// still open, which refer to this object.
  bool join();
  /// The thread shall look again. From any thread.
  void wake() { bell_.ring(); }

 private:
  using Request = ::gin::impl::RingRequest;

  void run();
  int look_at(ProxiedContext& context);
  void accept(ProxiedContext& context, const Request& request);
  void accept_drain(ProxiedContext& context, OpenRequest& open, const Request& request);
  bool is_live(const ginWindowEntry& window, const OpenRequest& open);
  bool translate(const Request& request, OpenRequest& open);
  void stage(const Request& request, const ginWindowEntry& near, std::uint64_t offset,
             OpenRequest& open);
  bool translate_atomic(const Request& request, OpenRequest& open);
  bool translate_signal(const Request& request, OpenRequest& open);
  pgas::SegmentNumber segment_of(std::uint16_t window, std::uint32_t peer) const;
  Lane& lane_to(ProxiedContext& context, int peer);
  void enqueue(OpenRequest& open);
  bool advance(ProxiedContext& context, Lane& lane);
  bool advance_queues();
  static void on_completed(pgas::CarriedRequest& carried, Status status);
  bool take_completed();
  bool end_all(OpenRequest* next);
  void complete(OpenRequest& open);
  void publish(ProxiedContext& context);
  bool has_failed() const;
  bool tell_peers();
  void fail(const OpenRequest& open, ginResult_t code, const std::string& what);
  void rest();
  bool has_work();

  Common& common_;
  const Setup& setup_;
  pgas::Carrier& carrier_;
  const bool tells_errors_;
  std::optional<pgas::ListenerNumber> listener_;
  std::uint32_t* parked_ = nullptr;  // in the memory of the rings

  // Of the thread.
  std::vector<std::unique_ptr<ProxiedContext>> contexts_;
  RequestPool pool_;
  struct Queue {
    ProxiedContext* context;
    Lane* lane;
  };
  std::vector<Queue> queues_;
  std::uint64_t open_count_ = 0;
  OpenRequest* completed_here_ = nullptr;  // those that this thread completed
  std::vector<int> untold_;
  bool telling_ = false;
  std::uint64_t idle_since_ns_ = 0;
  EngineCounters counters_;

  std::atomic<OpenRequest*> completed_{nullptr};  // those that others completed
  device::Bell bell_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace gimlet::gin

#endif
