// SPDX-License-Identifier: BSD-3-Clause
#include "gin/device_text.h"

#include <fmt/format.h>

#include "device/log.h"
#include "gin/communicator.h"
#include "gin/impl/exec.h"
#include "gin/impl/hooks.h"

namespace gimlet::gin {
namespace {

std::string index_text(const gin_exec_dim& index) {
  if (index.y == 0 && index.z == 0) return fmt::format("{}", index.x);
  return fmt::format("({},{},{})", index.x, index.y, index.z);
}

long window_number(const ginDevComm& comm, ginWindow_t window) {
  return window - comm.windowTable;
}

/// "put", or "put to PE 2" when a peer is known.
std::string operation_text(const Communicator& comm, const ginFault& fault) {
  const char* name = operation_name(fault.operation);
  if (fault.peer < 0) return name;
  const char* direction = fault.operation == ginOpGet ? "from" : "to";
  return fmt::format("{} {} {} {}", name, direction, comm.rank_word(), fault.peer);
}

}  // namespace

std::string calling_thread() {
  const gin_exec_thread* self = gin_exec_self();
  if (self == nullptr) return "a host thread";
  return fmt::format("kernel {} block {} thread {}", self->kernel == nullptr ? "?" : self->kernel,
                     index_text(self->block), index_text(self->thread));
}

const char* operation_name(std::uint32_t operation) {
  switch (operation) {
    case ginOpPut:
      return "put";
    case ginOpPutValue:
      return "putValue";
    case ginOpGet:
      return "get";
    case ginOpSignal:
      return "signal";
    case ginOpReadSignal:
      return "readSignal";
    case ginOpWaitSignal:
      return "waitSignal";
    case ginOpResetSignal:
      return "resetSignal";
    case ginOpShadow:
      return "signal shadow";
    case ginOpCounter:
      return "counter";
    case ginOpWaitCounter:
      return "waitCounter";
    case ginOpFlush:
      return "flush";
    case ginOpBarrier:
      return "barrier";
    case ginOpContext:
      return "context";
    case ginOpPointer:
      return "pointer";
    case ginOpAtomic:
      return "atomic";
    case ginOpPost:
      return "post";
    case ginOpAbort:
      return "abort";
    default:
      return "operation";
  }
}

std::string awaited_object(const Communicator& comm, const ginWait& wait) {
  if (wait.operation == ginOpBarrier) {
    return fmt::format("{} {} in barrier {} of context {}", comm.rank_word(), wait.peer, wait.index,
                       wait.context);
  }
  if (wait.operation == ginOpWaitCounter) {
    return fmt::format("counter {} of context {}", wait.index, wait.context);
  }
  if (wait.operation == ginOpPost) {
    return fmt::format("room in the ring of context {}", wait.context);
  }
  if (wait.operation == ginOpAtomic) {
    return fmt::format("the old value of a word of {} {}, context {}", comm.rank_word(), wait.peer,
                       wait.context);
  }
  if (wait.operation == ginOpFlush) {
    const std::string peer =
        wait.peer < 0 ? std::string() : fmt::format(" to {} {}", comm.rank_word(), wait.peer);
    return fmt::format("requests{} of context {} to complete", peer, wait.context);
  }
  if (wait.window != nullptr) {
    return fmt::format("the signal at offset {} of window {}", wait.index,
                       window_number(*wait.comm, wait.window));
  }
  return fmt::format("signal {} of context {}", wait.index, wait.context);
}

std::string fault_sentence(const Communicator& comm, const ginFault& fault) {
  const std::string operation = operation_text(comm, fault);
  switch (fault.reason) {
    case ginFaultWindow:
      return fmt::format("{}: the window is none of this communicator",
                         operation_name(fault.operation));
    case ginFaultPeer:
      return fmt::format("{}: peer {}; the team has ranks 0 to {}", operation, fault.value,
                         fault.allowed - 1);
    case ginFaultUnconnected:
      return fmt::format("{}: this device communicator is not connected to it", operation);
    case ginFaultRange:
      return fmt::format(
          "{}: {} bytes at offset {} are not all in the window of {} {}, which has {} bytes",
          operation_name(fault.operation), fault.bytes, static_cast<std::uint64_t>(fault.value),
          comm.rank_word(), fault.peer, fault.allowed);
    case ginFaultAlignment:
      return fmt::format("{}: offset {} of a {} is not a multiple of {} bytes", operation,
                         fault.value, fault.operation == ginOpAtomic ? "word" : "signal",
                         fault.bytes);
    case ginFaultSignal:
      return fmt::format("{}: signal {}; a context has {}, from 0", operation, fault.value,
                         fault.allowed);
    case ginFaultCounter:
      return fmt::format("{}: counter {}; a context has {}, from 0", operation, fault.value,
                         fault.allowed);
    case ginFaultContext:
      return fmt::format("{} {}; the device communicator has {}, from 0", operation, fault.value,
                         fault.allowed);
    case ginFaultBarrier:
      return fmt::format("{} {}; there are {}, from 0", operation, fault.value, fault.allowed);
    case ginFaultOffset:
      return fmt::format("{}: offset {}; through a proxy, offsets end below {}",
                         operation_name(fault.operation), static_cast<std::uint64_t>(fault.value),
                         fault.allowed);
    default:
      return fmt::format("{}: not carried out", operation);
  }
}

}  // namespace gimlet::gin

extern "C" void gin_exec_comm_fault(const ginDevComm* comm, const ginFault* fault) {
  auto& host = *static_cast<gimlet::gin::Communicator*>(comm->host);
  gimlet::gin::ErrorRecord record;
  record.code = ginInvalidArgument;
  record.rank = host.rank();
  record.peer = fault->peer;
  record.operation = static_cast<ginOperation>(fault->operation);
  record.offset = static_cast<std::uint64_t>(fault->value);
  if (!gimlet::gin::set_errors(*comm, record)) return;
  gimlet::log::error("{}{}: {}", host.sentence_prefix(), gimlet::gin::calling_thread(),
                     gimlet::gin::fault_sentence(host, *fault));
}
