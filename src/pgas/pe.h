// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_PE_H
#define GIMLET_PGAS_PE_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/backoff.h"
#include "device/memory_kind.h"
#include "pgas/bootstrap/bootstrap.h"
#include "pgas/segment/control_area.h"
#include "pgas/segment/offset_allocator.h"
#include "pgas/transport/transport.h"

namespace gimlet::pgas {

class Helper;

/// Segment numbers, the same on every PE.
enum SegmentId : std::uint16_t { kHeapSegment = 0, kDataSegment = 1 };

/// This process as a processing element: its memory, its peers, its ways to reach them.
///
/// Ownership: the Pe owns bootstrap, heap, mappings, transport and helper thread, and tears them
/// down in the reverse order in finalize(). Ordering on the direct transport: stores of this PE
/// reach a peer's memory in program order (x86 TSO), so fence() is a compiler barrier there and
/// quiet() adds a store-to-load barrier. A store overtakes what the other transport has under way,
/// so where a peer is reached by both, fence() waits for that to arrive. Failure: a wrong argument
/// or a lost peer ends the job with one sentence (die()).
class Pe {
 public:
  /// The default PE of the process: the one that the flat shmem_ functions mean.
  static Pe& self();

  // ---- start and end ----
  /// Counted; the first call starts everything. Collective on the first call.
  Status init();
  /// Undoes one init(); the last one is a full barrier and frees everything.
  void finalize();
  bool is_initialized() const { return initialized_.load(std::memory_order_acquire); }
  [[noreturn]] void global_exit(int status);
  /// Ends the job because of a mistake or a loss: `call` and `why` make the sentence.
  [[noreturn]] void die(const char* call, const std::string& why);

  // ---- numbers ----
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool exists(int pe) const { return static_cast<unsigned>(pe) < static_cast<unsigned>(size_); }

  // ---- addresses ----
  /// Where host operations can load and store PE `pe`'s copy of `bytes` bytes at `address`, or
  /// null: then route() decides. The heap is first and costs an add and a few compares.
  template <class T>
  T* direct(T* address, std::size_t bytes, int pe) const {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - heap_start_;
    if (offset >= heap_bytes_ || heap_bytes_ - offset < bytes) [[unlikely]]
      return nullptr;
    if (!exists(pe)) [[unlikely]]
      return nullptr;
    return place<T>(pe, offset);
  }
  /// The same for one element of at most 16 bytes, one compare cheaper: the last bytes of the heap
  /// are left to route().
  template <class T>
  T* direct(T* address, int pe) const {
    static_assert(sizeof(T) <= kLargestElement);
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - heap_start_;
    if (offset >= heap_element_bytes_) [[unlikely]]
      return nullptr;
    if (!exists(pe)) [[unlikely]]
      return nullptr;
    return place<T>(pe, offset);
  }
  struct Route {
    void* direct;  // null: use `remote`
    RemoteAddress remote;
  };
  /// The slow and complete translation. A PE that does not exist or an address that is not
  /// symmetric ends the job.
  Route route(const char* call, const char* argument, const void* address, std::size_t bytes,
              int pe);
  bool is_symmetric(const void* address) const;
  /// Base of PE `pe`'s heap segment in this process, whatever GIMLET_TRANSPORT says; null when not
  /// mapped.
  std::byte* mapped_base(int pe) const { return mapped_base_[static_cast<std::size_t>(pe)]; }
  const std::string& why_not_mapped() const { return why_not_mapped_; }
  const device::Memory* heap() const { return heap_.get(); }

  // ---- heap ----
  /// `bytes` of the heap, null when they don't fit (a sentence says so on PE 0). Collective, no
  /// barrier inside.
  void* allocate(const char* call, std::size_t bytes, std::size_t alignment);
  void release(const char* call, void* address);
  std::size_t allocated_bytes(const char* call, const void* address);

  // ---- other transport ----
  /// Started on first use; a failure ends the job.
  Transport& transport(const char* call);
  Transport* started_transport() const { return transport_ready_.load(std::memory_order_acquire); }
  /// The transport for threads that finalize() does not wait for: what get() gives stays until this
  /// goes. Null when the init that had `generation` is over.
  class KeptTransport {
   public:
    KeptTransport(Pe& pe, int generation);
    ~KeptTransport() { pe_.transport_keepers_.fetch_sub(1, std::memory_order_release); }
    KeptTransport(const KeptTransport&) = delete;
    KeptTransport& operator=(const KeptTransport&) = delete;
    Transport* get() const { return transport_; }

   private:
    Pe& pe_;
    Transport* transport_ = nullptr;
  };
  /// What that transport still had open is over too.
  bool has_ended(int generation) const {
    return ended_generation_.load(std::memory_order_acquire) >= generation;
  }
  void check(const char* call, const Status& status) {
    if (!status.ok()) [[unlikely]]
      die(call, status.message());
  }

  // ---- ordering and waiting ----
  void fence(const char* call);
  void quiet(const char* call);
  /// Returns when every PE has called it (dissemination, log2(size) rounds).
  void sync(const char* call);
  /// The last meeting: afterwards no PE waits for a message any more, so transports may be taken
  /// down in any order.
  void settle(const char* call);

  /// Waits until `done()` is true, serving the transport. `what` is for the report of a long wait.
  template <class Done, class What>
  void wait(const char* call, Done done, What what) {
    for (std::uint32_t look = hot_looks_; look != 0; --look) {
      if (done()) return;
    }
    wait_patiently(call, done, what);
  }
  /// The first looks of a wait, which nothing comes between: this many.
  std::uint32_t hot_looks() const { return hot_looks_; }
  /// wait() without them.
  template <class Done, class What>
  void wait_patiently(const char* call, Done done, What what) {
    device::Backoff backoff;
    std::uint64_t next_report_ns = report_after_ns_;
    while (!done()) {
      if (Transport* transport = started_transport()) transport->progress();
      backoff.step();
      if (backoff.waited_ns() == 0) continue;
      check_peers(call);
      if (next_report_ns == 0 || backoff.waited_ns() < next_report_ns) continue;
      report_wait(call, backoff.waited_ns(), what());
      next_report_ns += report_after_ns_;
    }
  }

  // ---- for the parts of pgas ----
  Bootstrap& bootstrap() { return *bootstrap_; }
  /// A PE that is known to have died, or -1. Safe from any thread, whatever init() and finalize()
  /// do meanwhile.
  int dead_peer() const {
    const std::atomic<int>* word = dead_peer_word_.load(std::memory_order_acquire);
    return word == nullptr ? -1 : word->load(std::memory_order_acquire);
  }
  ControlArea* control(int pe) const {
    return reinterpret_cast<ControlArea*>(mapped_base_[static_cast<std::size_t>(pe)]);
  }
  ControlArea& own_control() const { return *reinterpret_cast<ControlArea*>(heap_->base()); }
  int generation() const { return generation_; }
  Status start_transport();

 private:
  friend class Helper;

  Status start();
  Status map_node();
  Status share_heaps(std::vector<struct DescriptorOffer>& offers);
  void count_cores();
  void stop();
  TransportOwner::Lookup find_blob(int pe, std::vector<std::byte>& blob, Status& why);
  template <class Tell>
  void disseminate(const char* call, ControlArea::Flag* heard, std::uint64_t epoch, Tell tell);
  void check_peers(const char* call);
  void report_wait(const char* call, std::uint64_t waited_ns, const std::string& what);

  static constexpr std::size_t kLargestElement = 16;

  template <class T>
  T* place(int pe, std::uintptr_t offset) const {
    std::byte* base = host_base_[pe];
    if (base == 0) [[unlikely]]
      return nullptr;
    auto* result = reinterpret_cast<T*>(base + offset);
    if (result == nullptr) __builtin_unreachable();  // saves the callers a second test
    return result;
  }

  // Read by every operation; written by init and finalize only.
  std::uintptr_t heap_start_ = 0;
  std::size_t heap_bytes_ = 0;
  std::size_t heap_element_bytes_ = 0;     // heap_bytes_ - kLargestElement, 0 before init
  std::byte* const* host_base_ = nullptr;  // [size_], null: not by loads and stores
  int rank_ = -1;
  int size_ = -1;
  std::uint32_t hot_looks_ = 1;
  std::uint64_t report_after_ns_ = 0;
  std::atomic<Transport*> transport_ready_{nullptr};
  std::atomic<int> transport_keepers_{0};
  std::atomic<int> ended_generation_{-1};
  /// Some peer was reached by stores and by the transport, for memory of different kinds. Set by
  /// the thread that sends, before its own next fence.
  std::atomic<bool> has_two_ways_{false};
  std::uint64_t sync_epoch_ = 0;

  std::atomic<bool> initialized_{false};
  std::mutex lifecycle_;
  int init_count_ = 0;
  int generation_ = 0;

  std::unique_ptr<Bootstrap> bootstrap_;
  std::atomic<const std::atomic<int>*> dead_peer_word_{nullptr};  // of the last bootstrap
  std::unique_ptr<device::Memory> heap_;
  std::vector<std::byte*> host_bases_;
  std::vector<std::byte*> mapped_base_;
  std::vector<std::unique_ptr<device::Memory>> imported_;
  std::string why_not_mapped_;
  std::vector<LocalSegment> segments_;
  std::mutex heap_mutex_;
  std::unique_ptr<OffsetAllocator> allocator_;
  std::mutex transport_mutex_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Helper> helper_;
};

/// The default PE is never destroyed: at exit other threads and peers may still use it, and a
/// forked child must not take down what belongs to its parent. finalize() is what ends a PE; a
/// process that leaves without it gives everything back by ending.
union DefaultPe {
  DefaultPe();
  ~DefaultPe() {}
  Pe pe;
};
extern DefaultPe default_pe;

inline Pe& Pe::self() {
  return default_pe.pe;
}

}  // namespace gimlet::pgas

#endif
