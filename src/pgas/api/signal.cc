// SPDX-License-Identifier: BSD-3-Clause
// OpenSHMEM 1.6, 9.8: put with signal and signal operations.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pgas/api/compare.h"
#include "pgas/api/export.h"
#include "pgas/memory_barrier.h"
#include "pgas/pe.h"

namespace {

using gimlet::pgas::AmoOp;
using gimlet::pgas::Pe;
using gimlet::pgas::SignalOp;
using gimlet::pgas::Transport;

SignalOp checked_op(const char* call, int sig_op) {
  if (sig_op == SHMEM_SIGNAL_SET) return SignalOp::kSet;
  if (sig_op == SHMEM_SIGNAL_ADD) return SignalOp::kAdd;
  Pe::self().die(
      call,
      fmt::format("sig_op {} is not a signal operation; allowed are SHMEM_SIGNAL_SET ({}) and "
                  "SHMEM_SIGNAL_ADD ({})",
                  sig_op, SHMEM_SIGNAL_SET, SHMEM_SIGNAL_ADD));
}

/// Release: pairs with the acquire load of the waiter, who then sees the payload stored before. A
/// SET is an exchange on no path but a plain store here, which is atomic and of release order on
/// its own.
void raise(std::uint64_t* word, std::uint64_t value, SignalOp op) {
  const std::atomic_ref<std::uint64_t> signal(*word);
  if (op == SignalOp::kSet) {
    signal.store(value, std::memory_order_release);
  } else {
    signal.fetch_add(value, std::memory_order_release);
  }
}

AmoOp amo_of(SignalOp op) {
  return op == SignalOp::kSet ? AmoOp::kSet : AmoOp::kAdd;
}

/// Payload and signal may lie in different segments, so one may be reachable by stores and the
/// other not.
template <bool nonblocking>
[[gnu::cold, gnu::noinline]] void put_signal_slow(const char* call, void* dest, const void* source,
                                                  std::size_t bytes, std::uint64_t* sig_addr,
                                                  std::uint64_t value, SignalOp op, int pe) {
  Pe& self = Pe::self();
  const Pe::Route signal = self.route(call, "sig_addr", sig_addr, sizeof *sig_addr, pe);
  Pe::Route data{};
  if (bytes != 0) data = self.route(call, "dest", dest, bytes, pe);
  if (data.direct != nullptr) std::memcpy(data.direct, source, bytes);
  const bool payload_is_there = data.direct != nullptr || bytes == 0;
  if (payload_is_there && signal.direct != nullptr) {
    raise(static_cast<std::uint64_t*>(signal.direct), value, op);
    return;
  }
  Transport& transport = self.transport(call);
  if (payload_is_there) {
    gimlet::pgas::store_release_barrier();
    self.check(call, transport.amo(amo_of(op), 8, signal.remote, value, 0, nullptr));
    return;
  }
  if (signal.direct != nullptr) {
    self.check(call, transport.put(data.remote, source, bytes));
    self.check(call, transport.quiet());
    raise(static_cast<std::uint64_t*>(signal.direct), value, op);
    return;
  }
  self.check(call,
             nonblocking
                 ? transport.put_signal_nbi(data.remote, source, bytes, signal.remote, value, op)
                 : transport.put_signal(data.remote, source, bytes, signal.remote, value, op));
}

template <bool nonblocking>
inline void put_signal(const char* call, void* dest, const void* source, std::size_t count,
                       std::size_t element, std::uint64_t* sig_addr, std::uint64_t value,
                       int sig_op, int pe) {
  const SignalOp op = checked_op(call, sig_op);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, element, &bytes)) bytes = SIZE_MAX;
  Pe& self = Pe::self();
  void* to = self.direct(dest, bytes, pe);
  std::uint64_t* word = self.direct(sig_addr, pe);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(sig_addr) % sizeof *sig_addr == 0;
  if (to != nullptr && word != nullptr && is_aligned) [[likely]] {
    if (bytes != 0) std::memcpy(to, source, bytes);
    raise(word, value, op);
    return;
  }
  if (!is_aligned)
    self.die(call,
             fmt::format("sig_addr {} is not aligned to 8 bytes", static_cast<void*>(sig_addr)));
  put_signal_slow<nonblocking>(call, dest, source, bytes, sig_addr, value, op, pe);
}

}  // namespace

#define DEFINE_PUT_SIGNAL(NAME, TYPE, BYTES)                                                      \
  GIMLET_SHMEM(void, NAME##_signal, TYPE* dest, const TYPE* source, size_t nelems,                \
               uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) {                         \
    put_signal<false>("shmem_" #NAME "_signal", dest, source, nelems, BYTES, sig_addr, signal,    \
                      sig_op, pe);                                                                \
  }                                                                                               \
  GIMLET_SHMEM(void, NAME##_signal_nbi, TYPE* dest, const TYPE* source, size_t nelems,            \
               uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) {                         \
    put_signal<true>("shmem_" #NAME "_signal_nbi", dest, source, nelems, BYTES, sig_addr, signal, \
                     sig_op, pe);                                                                 \
  }
#define DEFINE_TYPED(NAME, TYPE, ARG) DEFINE_PUT_SIGNAL(NAME##_put, TYPE, sizeof(TYPE))
SHMEM_I_RMA(DEFINE_TYPED, )
#define DEFINE_SIZED(SIZE, ARG) DEFINE_PUT_SIGNAL(put##SIZE, void, SIZE / 8)
SHMEM_I_SIZES(DEFINE_SIZED, )
DEFINE_PUT_SIGNAL(putmem, void, 1)

GIMLET_SHMEM(void, signal_add, uint64_t* sig_addr, uint64_t signal, int pe) {
  put_signal<false>("shmem_signal_add", sig_addr, nullptr, 0, 1, sig_addr, signal, SHMEM_SIGNAL_ADD,
                    pe);
}

GIMLET_SHMEM(void, signal_set, uint64_t* sig_addr, uint64_t signal, int pe) {
  put_signal<false>("shmem_signal_set", sig_addr, nullptr, 0, 1, sig_addr, signal, SHMEM_SIGNAL_SET,
                    pe);
}

GIMLET_SHMEM(uint64_t, signal_fetch, const uint64_t* sig_addr) {
  return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}

GIMLET_SHMEM(uint64_t, signal_wait_until, uint64_t* sig_addr, int cmp, uint64_t cmp_value) {
  return gimlet::pgas::wait_until("shmem_signal_wait_until", sig_addr, cmp, cmp_value);
}
