// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_ATOMIC_H
#define GIMLET_GIN_IMPL_ATOMIC_H

#include <stdint.h>
#include <string.h>

#include "gin/action.h"
#include "gin/platform.h"

/// Words that ranks share, all at system scope. Orders are chosen at compile time in each branch,
/// so that a relaxed access stays one. No fences: they cost more than a release on the word itself,
/// and ThreadSanitizer does not know them.
///
/// GIN_MUTANT_* are for tests only: each weakens exactly one memory order, and a test must notice.
///   GIN_MUTANT_RELAXED_SIGNAL  the signal of a put no longer releases the put's payload
///   GIN_MUTANT_NO_RELEASE      a strong signal no longer releases earlier puts of its lane
///   GIN_MUTANT_NO_ACQUIRE      a wait no longer acquires what its signal released
namespace gin {
namespace impl {

enum class Order { kRelaxed, kAcquire, kRelease };

#ifdef GIN_MUTANT_RELAXED_SIGNAL
constexpr Order kPutSignalOrder = Order::kRelaxed;
#else
constexpr Order kPutSignalOrder = Order::kRelease;
#endif
#ifdef GIN_MUTANT_NO_RELEASE
constexpr Order kStrongSignalOrder = Order::kRelaxed;
#else
constexpr Order kStrongSignalOrder = Order::kRelease;
#endif
#ifdef GIN_MUTANT_NO_ACQUIRE
constexpr Order kWaitOrder = Order::kRelaxed;
#else
constexpr Order kWaitOrder = Order::kAcquire;
#endif

GIN_DEVICE_INLINE bool has_acquire(memory_order order) {
  return order != memory_order_relaxed && order != memory_order_release;
}

GIN_DEVICE_INLINE bool has_release(memory_order order) {
  return order == memory_order_release || order == memory_order_acq_rel ||
         order == memory_order_seq_cst;
}

#ifdef __CUDACC__

template <class T>
using SystemRef = atomic_ref<T, thread_scope_system>;

template <class T>
GIN_DEVICE_INLINE T load(const T* word, Order order) {
  SystemRef<T> ref(*const_cast<T*>(word));
  return order == Order::kAcquire ? ref.load(memory_order_acquire) : ref.load(memory_order_relaxed);
}

template <class T>
GIN_DEVICE_INLINE void store(T* word, T value) {
  SystemRef<T>(*word).store(value, memory_order_relaxed);
}

GIN_DEVICE_INLINE void add(uint64_t* word, uint64_t value, Order order) {
  SystemRef<uint64_t> ref(*word);
  if (order == Order::kRelease) {
    ref.fetch_add(value, memory_order_release);
  } else {
    ref.fetch_add(value, memory_order_relaxed);
  }
}

GIN_DEVICE_INLINE uint64_t fetch_add(uint64_t* word, uint64_t value) {
  return SystemRef<uint64_t>(*word).fetch_add(value, memory_order_relaxed);
}

template <class T>
GIN_DEVICE_INLINE void store_release(T* word, T value) {
  SystemRef<T>(*word).store(value, memory_order_release);
}

template <class T>
GIN_DEVICE_INLINE bool replace(T* word, T expected, T desired) {
  return SystemRef<T>(*word).compare_exchange_strong(expected, desired, memory_order_acquire,
                                                     memory_order_relaxed);
}

#else

template <class T>
GIN_DEVICE_INLINE T load(const T* word, Order order) {
  return order == Order::kAcquire ? __atomic_load_n(word, __ATOMIC_ACQUIRE)
                                  : __atomic_load_n(word, __ATOMIC_RELAXED);
}

template <class T>
GIN_DEVICE_INLINE void store(T* word, T value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

GIN_DEVICE_INLINE void add(uint64_t* word, uint64_t value, Order order) {
  if (order == Order::kRelease) {
    __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
  } else {
    __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
  }
}

GIN_DEVICE_INLINE uint64_t fetch_add(uint64_t* word, uint64_t value) {
  return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

template <class T>
GIN_DEVICE_INLINE void store_release(T* word, T value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

// Acquire: who takes a word over sees what its last holder did.
template <class T>
GIN_DEVICE_INLINE bool replace(T* word, T expected, T desired) {
  return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

#endif

/// The operations of AtomicOp, relaxed: the word's old value.
template <class Word>
GIN_DEVICE_INLINE Word update(Word* word, AtomicOp op, Word operand, Word compare) {
#ifdef __CUDACC__
  SystemRef<Word> ref(*word);
  switch (op) {
    case AtomicOp::Fetch:
      return ref.load(memory_order_relaxed);
    case AtomicOp::Set:
    case AtomicOp::Swap:
      return ref.exchange(operand, memory_order_relaxed);
    case AtomicOp::CompareSwap:
      ref.compare_exchange_strong(compare, operand, memory_order_relaxed, memory_order_relaxed);
      return compare;
    case AtomicOp::Add:
      return ref.fetch_add(operand, memory_order_relaxed);
    case AtomicOp::And:
      return ref.fetch_and(operand, memory_order_relaxed);
    case AtomicOp::Or:
      return ref.fetch_or(operand, memory_order_relaxed);
    default:
      return ref.fetch_xor(operand, memory_order_relaxed);
  }
#else
  switch (op) {
    case AtomicOp::Fetch:
      return __atomic_load_n(word, __ATOMIC_RELAXED);
    case AtomicOp::Set:
    case AtomicOp::Swap:
      return __atomic_exchange_n(word, operand, __ATOMIC_RELAXED);
    case AtomicOp::CompareSwap:
      __atomic_compare_exchange_n(word, &compare, operand, false, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED);
      return compare;
    case AtomicOp::Add:
      return __atomic_fetch_add(word, operand, __ATOMIC_RELAXED);
    case AtomicOp::And:
      return __atomic_fetch_and(word, operand, __ATOMIC_RELAXED);
    case AtomicOp::Or:
      return __atomic_fetch_or(word, operand, __ATOMIC_RELAXED);
    default:
      return __atomic_fetch_xor(word, operand, __ATOMIC_RELAXED);
  }
#endif
}

/// One store of the bytes at `value`, to an address that is aligned for Word.
template <class Word>
GIN_DEVICE_INLINE void store_as(char* address, const void* value) {
  Word word = 0;
  memcpy(&word, value, sizeof word);
  store(reinterpret_cast<Word*>(address), word);
}

}  // namespace impl
}  // namespace gin

#endif
