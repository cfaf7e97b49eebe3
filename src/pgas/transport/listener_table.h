// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_TRANSPORT_LISTENER_TABLE_H
#define GIMLET_PGAS_TRANSPORT_LISTENER_TABLE_H

#include <limits>
#include <map>
#include <utility>

#include "pgas/transport/carrier.h"

namespace gimlet::pgas {

/// The listeners of a rank. A number is given out once: messages for its last owner may still be
/// under way when that has gone.
class ListenerTable {
 public:
  Status add(Carrier::Listener listener, ListenerNumber& number) {
    if (next_ == std::numeric_limits<ListenerNumber>::max())
      return fail(Code::kNoMemory, "all {} numbers of listeners have been given out", next_);
    number = next_++;
    listeners_.emplace(number, std::move(listener));
    return {};
  }
  void remove(ListenerNumber number) { listeners_.erase(number); }
  /// Null when there is none, or none any more.
  const Carrier::Listener* find(ListenerNumber number) const {
    const auto found = listeners_.find(number);
    return found == listeners_.end() ? nullptr : &found->second;
  }
  bool has_given(std::uint64_t number) const { return number < next_; }

 private:
  std::map<ListenerNumber, Carrier::Listener> listeners_;
  ListenerNumber next_ = 0;
};

}  // namespace gimlet::pgas

#endif
