// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_PROXY_PROXIES_H
#define GIMLET_GIN_PATH_PROXY_PROXIES_H

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gin/path/proxy/proxy.h"

namespace gimlet::gin {

/// The proxy threads of one device communicator. Each serves as many contexts as the next, in their
/// order, the last perhaps fewer.
///
/// Shared by all threads, and constant while they run: setup, ring memory, addresses of the peers.
/// Shared and safe from any thread: the carrier, where all have the same, and the error word, of
/// whose news the first thread tells the peers, once for the communicator. Each for itself: its
/// contexts with their lanes and counters, the requests of these, the list that completions come
/// by, the listener that hears of refusals, bell and parked word. A lane is a context and a peer,
/// so no order of requests depends on two threads.
class Proxies {
 public:
  /// Threads that serve so many contexts each (0: one serves all).
  static std::uint32_t count(std::uint32_t contexts, std::uint64_t contexts_each) {
    if (contexts_each == 0 || contexts_each >= contexts) return 1;
    return static_cast<std::uint32_t>((contexts + contexts_each - 1) / contexts_each);
  }

  /// Offers what peers raise and send notes to; peers get to know the address. There is one thread
  /// for each carrier of the setup.
  static Status open(Proxy::Setup setup, std::unique_ptr<RingMemory> memory,
                     std::unique_ptr<Proxies>& out);
  ~Proxies();
  Proxies(const Proxies&) = delete;
  Proxies& operator=(const Proxies&) = delete;

  Proxy::Address address() const { return address_; }
  const RingMemory& memory() const { return *common_.memory; }
  EngineCounts counts() const;
  std::uint64_t confirmations() const { return common_.setup.carriers.front()->confirmations(); }
  /// From now on requests are carried; `peers` by rank.
  Status start(std::vector<Proxy::Address> peers);
  /// Ends the threads when all requests are complete. False: some are still open after `seconds`,
  /// and refer to this object and to memory of windows.
  bool stop(double seconds);
  /// After a stop() that returned false: peers can't raise signals or send notes any more.
  void detach();
  /// The thread of that context shall look again. From any thread.
  void wake(std::uint32_t context) { proxies_[context / common_.contexts_each]->wake(); }
  /// All threads shall look again, for there is an error. From any thread.
  void wake();

 private:
  Proxies(Proxy::Setup setup, std::unique_ptr<RingMemory> memory);
  Status listen(Proxy& proxy);
  void ignore_refusals();
  void hear_refusal(const pgas::Refusal& refusal);
  void hear(const HeardError::Error& error);
  void hear_note(std::span<const std::byte> note);

  Proxy::Common common_;
  Proxy::Address address_;
  bool has_segment_ = false;
  std::vector<std::unique_ptr<Proxy>> proxies_;
};

}  // namespace gimlet::gin

#endif
