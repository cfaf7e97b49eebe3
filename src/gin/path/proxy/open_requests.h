// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_PROXY_OPEN_REQUESTS_H
#define GIMLET_GIN_PATH_PROXY_OPEN_REQUESTS_H

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "gin/impl/ring_layout.h"
#include "pgas/transport/carrier.h"

/// Requests that a proxy took out of a ring and that are not complete. One thread uses all of this.
namespace gimlet::gin {

class Proxy;
struct Lane;
struct ProxiedContext;

struct OpenRequest {
  pgas::CarriedRequest carried;  // first: the carrier hands this back
  Proxy* proxy = nullptr;
  Lane* lane = nullptr;  // null: a drain of all peers
  ProxiedContext* context = nullptr;
  OpenRequest* whole = nullptr;    // the drain of all peers that this is a part of
  std::uint32_t parts = 0;         // of a drain of all peers
  std::uint64_t number = 0;        // in the ring
  std::uint64_t inline_value = 0;  // source of a small put
  std::uint32_t operation = 0;     // ginRingOperation
  // Of a fetching atomic operation's result, or of a bounce: what it says once this is complete.
  std::uint64_t* state = nullptr;
  std::uint64_t state_after = 0;
  bool has_counter = false;
  std::uint16_t counter = 0;
  Status status;

  struct Neighbours {
    OpenRequest* before = nullptr;
    OpenRequest* after = nullptr;
  };
  Neighbours in_context;
  Neighbours in_lane;
  OpenRequest* behind = nullptr;          // in the queue of its lane
  OpenRequest* next_completed = nullptr;  // in the list that the carrier's threads leave
};

/// A list in order of numbers: requests join at the end and leave anywhere.
template <OpenRequest::Neighbours OpenRequest::*Link>
class NumberedList {
 public:
  bool empty() const { return first_ == nullptr; }
  /// The number of the oldest, or `none`.
  std::uint64_t oldest(std::uint64_t none) const { return empty() ? none : first_->number; }
  void append(OpenRequest& request) {
    (request.*Link) = {last_, nullptr};
    (last_ == nullptr ? first_ : (last_->*Link).after) = &request;
    last_ = &request;
  }
  void remove(OpenRequest& request) {
    OpenRequest* const before = (request.*Link).before;
    OpenRequest* const after = (request.*Link).after;
    (before == nullptr ? first_ : (before->*Link).after) = after;
    (after == nullptr ? last_ : (after->*Link).before) = before;
  }

 private:
  OpenRequest* first_ = nullptr;
  OpenRequest* last_ = nullptr;
};

/// Requests of one context to one peer. A lane has at most kMostPosted requests in the carrier; the
/// others queue here in their order.
struct Lane {
  static constexpr std::uint32_t kMostPosted = 64;

  int peer = 0;
  NumberedList<&OpenRequest::in_lane> open;
  OpenRequest* first_queued = nullptr;
  OpenRequest* last_queued = nullptr;
  std::uint32_t posted = 0;
  bool is_listed = false;  // among the lanes whose queue is to be looked at again
};

/// Memory for requests, reused.
class RequestPool {
 public:
  OpenRequest& take() {
    if (unused_.empty()) return all_.emplace_back();
    OpenRequest& request = *unused_.back();
    unused_.pop_back();
    std::destroy_at(&request);
    return *std::construct_at(&request);
  }
  void give_back(OpenRequest& request) { unused_.push_back(&request); }

 private:
  std::deque<OpenRequest> all_;
  std::vector<OpenRequest*> unused_;
};

}  // namespace gimlet::gin

#endif
