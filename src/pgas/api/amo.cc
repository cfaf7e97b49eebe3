// SPDX-License-Identifier: BSD-3-Clause
// OpenSHMEM 1.6, 9.7: atomic memory operations.
//
// On the direct transport an update is a lock-prefixed instruction on the peer's memory; through
// another transport it is one at the target, so both exclude each other. All are sequentially
// consistent, which costs nothing extra on x86 and makes the fetching forms full barriers.
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "pgas/api/export.h"
#include "pgas/memory_barrier.h"
#include "pgas/pe.h"

namespace {

using gimlet::pgas::AmoOp;
using gimlet::pgas::Pe;

/// Arithmetic and compares happen on the unsigned type of the same width: two's complement wraps as
/// it should, and float and double swap by their bits.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
Bits<T> bits_of(T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return std::bit_cast<Bits<T>>(value);
}

template <AmoOp op, class B>
inline B apply(B* address, B operand, B compare) {
  const std::atomic_ref<B> word(*address);
  if constexpr (op == AmoOp::kFetch) {
    // A plain load could pass this PE's earlier stores; the update forms can't.
    gimlet::pgas::store_to_load_barrier();
    return word.load(std::memory_order_seq_cst);
  } else if constexpr (op == AmoOp::kSet || op == AmoOp::kSwap) {
    return word.exchange(operand);
  } else if constexpr (op == AmoOp::kCompareSwap) {
    word.compare_exchange_strong(compare, operand);
    return compare;
  } else if constexpr (op == AmoOp::kAdd) {
    return word.fetch_add(operand);
  } else if constexpr (op == AmoOp::kAnd) {
    return word.fetch_and(operand);
  } else if constexpr (op == AmoOp::kOr) {
    return word.fetch_or(operand);
  } else {
    return word.fetch_xor(operand);
  }
}

void require_aligned(const char* call, const void* address, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes == 0) return;
  Pe::self().die(
      call, fmt::format("address {} is not aligned to the {} bytes of its type", address, bytes));
}

enum class Result : unsigned char { kNone, kNow, kByQuiet };

template <AmoOp op, Result result, class B>
[[gnu::cold, gnu::noinline]] void amo_slow(const char* call, B* address, B operand, B compare,
                                           int pe, void* fetched) {
  Pe& self = Pe::self();
  require_aligned(call, address, sizeof(B));
  const Pe::Route route =
      self.route(call, op == AmoOp::kFetch ? "source" : "dest", address, sizeof(B), pe);
  if (route.direct != nullptr) {
    const B before = apply<op>(static_cast<B*>(route.direct), operand, compare);
    if (result != Result::kNone) std::memcpy(fetched, &before, sizeof before);
    return;
  }
  auto& transport = self.transport(call);
  self.check(call, result == Result::kByQuiet
                       ? transport.amo_nbi(op, sizeof(B), route.remote, operand, compare, fetched)
                       : transport.amo(op, sizeof(B), route.remote, operand, compare, fetched));
}

template <AmoOp op, Result result, class T>
inline T amo(const char* call, const T* address, Bits<T> operand, Bits<T> compare, int pe,
             T* fetched = nullptr) {
  using B = Bits<T>;
  auto* word = reinterpret_cast<B*>(const_cast<T*>(address));
  if (B* direct = Pe::self().direct(word, pe); direct != nullptr) [[likely]] {
    if (reinterpret_cast<std::uintptr_t>(direct) % sizeof(B) == 0) [[likely]] {
      const T before = std::bit_cast<T>(apply<op>(direct, operand, compare));
      if constexpr (result == Result::kByQuiet) *fetched = before;
      return before;
    }
  }
  T before{};
  amo_slow<op, result>(call, word, operand, compare, pe,
                       result == Result::kNone
                           ? nullptr
                           : static_cast<void*>(result == Result::kByQuiet ? fetched : &before));
  return before;
}

}  // namespace

#define CALL(NAME, REST) "shmem_" #NAME "_atomic_" #REST

#define DEFINE_EXT(NAME, TYPE, ARG)                                                                \
  GIMLET_SHMEM(TYPE, NAME##_atomic_fetch, const TYPE* source, int pe) {                            \
    return amo<AmoOp::kFetch, Result::kNow>(CALL(NAME, fetch), source, 0, 0, pe);                  \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_atomic_set, TYPE* dest, TYPE value, int pe) {                          \
    amo<AmoOp::kSet, Result::kNone>(CALL(NAME, set), dest, bits_of(value), 0, pe);                 \
  }                                                                                                \
  GIMLET_SHMEM(TYPE, NAME##_atomic_swap, TYPE* dest, TYPE value, int pe) {                         \
    return amo<AmoOp::kSwap, Result::kNow>(CALL(NAME, swap), dest, bits_of(value), 0, pe);         \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_atomic_fetch_nbi, TYPE* fetch, const TYPE* source, int pe) {           \
    amo<AmoOp::kFetch, Result::kByQuiet>(CALL(NAME, fetch_nbi), source, 0, 0, pe, fetch);          \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_atomic_swap_nbi, TYPE* fetch, TYPE* dest, TYPE value, int pe) {        \
    amo<AmoOp::kSwap, Result::kByQuiet>(CALL(NAME, swap_nbi), dest, bits_of(value), 0, pe, fetch); \
  }
SHMEM_I_AMO_EXT(DEFINE_EXT, )

#define DEFINE_STD(NAME, TYPE, ARG)                                                                \
  GIMLET_SHMEM(TYPE, NAME##_atomic_compare_swap, TYPE* dest, TYPE cond, TYPE value, int pe) {      \
    return amo<AmoOp::kCompareSwap, Result::kNow>(CALL(NAME, compare_swap), dest, bits_of(value),  \
                                                  bits_of(cond), pe);                              \
  }                                                                                                \
  GIMLET_SHMEM(TYPE, NAME##_atomic_fetch_inc, TYPE* dest, int pe) {                                \
    return amo<AmoOp::kAdd, Result::kNow>(CALL(NAME, fetch_inc), dest, 1, 0, pe);                  \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_atomic_inc, TYPE* dest, int pe) {                                      \
    amo<AmoOp::kAdd, Result::kNone>(CALL(NAME, inc), dest, 1, 0, pe);                              \
  }                                                                                                \
  GIMLET_SHMEM(TYPE, NAME##_atomic_fetch_add, TYPE* dest, TYPE value, int pe) {                    \
    return amo<AmoOp::kAdd, Result::kNow>(CALL(NAME, fetch_add), dest, bits_of(value), 0, pe);     \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_atomic_add, TYPE* dest, TYPE value, int pe) {                          \
    amo<AmoOp::kAdd, Result::kNone>(CALL(NAME, add), dest, bits_of(value), 0, pe);                 \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_atomic_compare_swap_nbi, TYPE* fetch, TYPE* dest, TYPE cond,           \
               TYPE value, int pe) {                                                               \
    amo<AmoOp::kCompareSwap, Result::kByQuiet>(CALL(NAME, compare_swap_nbi), dest, bits_of(value), \
                                               bits_of(cond), pe, fetch);                          \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_atomic_fetch_inc_nbi, TYPE* fetch, TYPE* dest, int pe) {               \
    amo<AmoOp::kAdd, Result::kByQuiet>(CALL(NAME, fetch_inc_nbi), dest, 1, 0, pe, fetch);          \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_atomic_fetch_add_nbi, TYPE* fetch, TYPE* dest, TYPE value, int pe) {   \
    amo<AmoOp::kAdd, Result::kByQuiet>(CALL(NAME, fetch_add_nbi), dest, bits_of(value), 0, pe,     \
                                       fetch);                                                     \
  }
SHMEM_I_AMO_STD(DEFINE_STD, )

#define DEFINE_BIT(NAME, TYPE, OP, KIND)                                                           \
  GIMLET_SHMEM(TYPE, NAME##_atomic_fetch_##OP, TYPE* dest, TYPE value, int pe) {                   \
    return amo<KIND, Result::kNow>(CALL(NAME, fetch_##OP), dest, bits_of(value), 0, pe);           \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_atomic_##OP, TYPE* dest, TYPE value, int pe) {                         \
    amo<KIND, Result::kNone>(CALL(NAME, OP), dest, bits_of(value), 0, pe);                         \
  }                                                                                                \
  GIMLET_SHMEM(void, NAME##_atomic_fetch_##OP##_nbi, TYPE* fetch, TYPE* dest, TYPE value,          \
               int pe) {                                                                           \
    amo<KIND, Result::kByQuiet>(CALL(NAME, fetch_##OP##_nbi), dest, bits_of(value), 0, pe, fetch); \
  }
#define DEFINE_AND(NAME, TYPE, ARG) DEFINE_BIT(NAME, TYPE, and, AmoOp::kAnd)
#define DEFINE_OR(NAME, TYPE, ARG) DEFINE_BIT(NAME, TYPE, or, AmoOp::kOr)
#define DEFINE_XOR(NAME, TYPE, ARG) DEFINE_BIT(NAME, TYPE, xor, AmoOp::kXor)
SHMEM_I_AMO_BIT(DEFINE_AND, )
SHMEM_I_AMO_BIT(DEFINE_OR, )
SHMEM_I_AMO_BIT(DEFINE_XOR, )
