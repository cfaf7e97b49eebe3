// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_UPCALL_QUEUE_H
#define GIMLET_TOOLS_OSHRUN_UPCALL_QUEUE_H

#include <mutex>
#include <string>
#include <vector>

#include "device/unique_fd.h"

namespace gimlet::oshrun {

// What a PE told the PMIx server.
struct Upcall {
  enum class Kind { kConnected, kFinalized, kAborted };
  Kind kind;
  int pe;
  int status = 0;    // of an abort
  std::string text;  // of an abort, may be empty
};

// Carries upcalls from libpmix's progress thread, which must never wait for us, to the main loop.
class UpcallQueue {
 public:
  UpcallQueue();
  void push(Upcall upcall);
  // Everything pushed so far, in order; never waits.
  std::vector<Upcall> take();
  // Readable while there is something to take.
  [[nodiscard]] int fd() const { return wake_.get(); }

 private:
  std::mutex mutex_;
  std::vector<Upcall> upcalls_;
  UniqueFd wake_;
};

}  // namespace gimlet::oshrun

#endif
