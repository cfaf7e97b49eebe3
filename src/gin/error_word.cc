// SPDX-License-Identifier: BSD-3-Clause
#include "gin/error_word.h"

#include <atomic>

#include "gin/impl/exec.h"
#include "gin/impl/hooks.h"
#include "gin/path/proxy/proxies.h"

namespace gimlet::gin {

bool set_error(ginErrorWord& word, const ErrorRecord& record) {
  std::atomic_ref state(word.state);
  std::uint32_t fine = ginErrorFine;
  if (!state.compare_exchange_strong(fine, ginErrorWriting, std::memory_order_relaxed)) {
    return false;
  }
  word.code = record.code;
  word.rank = record.rank;
  word.peer = record.peer;
  word.operation = static_cast<std::uint32_t>(record.operation);
  word.offset = record.offset;
  // Taken by the acquire of read_error().
  state.store(ginErrorSet, std::memory_order_release);
  return true;
}

ginResult_t read_error(const ginErrorWord& word) {
  // C++20 has no atomic_ref to const.
  std::atomic_ref state(const_cast<std::uint32_t&>(word.state));
  switch (state.load(std::memory_order_acquire)) {
    case ginErrorFine:
      return ginSuccess;
    case ginErrorSet:
      return static_cast<ginResult_t>(word.code);
    default:
      return ginInternalError;
  }
}

bool set_errors(const ginDevComm& comm, const ErrorRecord& own) {
  const bool first = set_error(*comm.error, own);
  ErrorRecord theirs = own;
  theirs.code = ginRemoteError;
  for (int rank = 0; first && rank < comm.nRanks; ++rank) {
    const std::uint32_t slot = ginMappedSlot(comm.peerSlots[rank]);
    if (slot >= GIN_PROXY_SLOT || rank == comm.rank) continue;
    set_error(*reinterpret_cast<ginErrorWord*>(comm.resourceWindow->peers[slot].base), theirs);
  }
  if (!first) return false;
  gin_exec_wake();
  if (comm.proxy != nullptr) static_cast<Proxies*>(comm.proxy)->wake();
  return true;
}

}  // namespace gimlet::gin

extern "C" void gin_exec_comm_trap(const ginDevComm* comm) {
  std::atomic_ref state(comm->error->state);
  // Acquire: the code is complete.
  while (state.load(std::memory_order_acquire) == ginErrorWriting) gin_exec_yield();
  gin_exec_fail(comm->error->code, nullptr);
}
