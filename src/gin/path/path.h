// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_PATH_H
#define GIMLET_GIN_PATH_PATH_H

#include <memory>
#include <span>
#include <string>

#include "device/memory_kind.h"
#include "device/status.h"

namespace gimlet::gin {

/// One way for device code to reach other ranks: its host side. The device side of a path is
/// functions in include/gin/impl, which read what register_memory() made.
///
/// Calls marked collective are made by all ranks of the communicator in the same order.
class Path {
 public:
  /// What a path keeps for one registered piece of memory; its destructor undoes the registration.
  class Registration {
   public:
    virtual ~Registration() = default;
  };

  virtual ~Path() = default;
  virtual const char* name() const = 0;
  /// Can device code reach that rank? Otherwise `why_not` holds the reason.
  virtual bool reaches(int rank, std::string* why_not) const = 0;
  /// Prepares operations towards these ranks. Collective.
  virtual Status connect(std::span<const int> ranks) = 0;
  /// Makes `mine` (null: nothing) reachable for the others and theirs for this rank. Collective.
  virtual Status register_memory(const device::Memory* mine,
                                 std::unique_ptr<Registration>& out) = 0;
  /// Moves what a CPU has to move. True when something moved.
  virtual bool progress() = 0;
  /// Kernels have ended: nothing is started any more. Registrations may outlive it.
  virtual void close() = 0;
};

}  // namespace gimlet::gin

#endif
