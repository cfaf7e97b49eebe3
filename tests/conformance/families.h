/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every typed and sized family of puts, gets and puts with signal as a row of one table, made from
 * the library's own type table, so that a test of one is a test of all.
 */
#ifndef GIMLET_TESTS_CONFORMANCE_FAMILIES_H
#define GIMLET_TESTS_CONFORMANCE_FAMILIES_H

#include <float.h>

#include "conformance.h"

typedef void put_function(void* dest, const void* source, size_t nelems, int pe);
typedef void one_function(void* to, const void* from, int pe);
typedef void signal_function(void* dest, const void* source, size_t nelems, uint64_t* signal_word,
                             uint64_t signal, int operation, int pe);

struct family {
  const char* name;
  size_t size;       /* bytes of an element */
  size_t value_size; /* bytes that survive passing an element by value: all but padding */
  put_function *put, *get, *put_nbi, *get_nbi;
  signal_function *put_signal, *put_signal_nbi;
  one_function *p, *g; /* null for sized families and mem */
};

#define T_VALUE_SIZE_longdouble (LDBL_MANT_DIG == 64 ? (size_t)10 : sizeof(long double))

#define T_TYPED(NAME, TYPE, ARG)                                                                   \
  static void t_##NAME##_put(void* d, const void* s, size_t n, int pe) {                           \
    shmem_##NAME##_put(d, s, n, pe);                                                               \
  }                                                                                                \
  static void t_##NAME##_get(void* d, const void* s, size_t n, int pe) {                           \
    shmem_##NAME##_get(d, s, n, pe);                                                               \
  }                                                                                                \
  static void t_##NAME##_put_nbi(void* d, const void* s, size_t n, int pe) {                       \
    shmem_##NAME##_put_nbi(d, s, n, pe);                                                           \
  }                                                                                                \
  static void t_##NAME##_get_nbi(void* d, const void* s, size_t n, int pe) {                       \
    shmem_##NAME##_get_nbi(d, s, n, pe);                                                           \
  }                                                                                                \
  static void t_##NAME##_put_signal(void* d, const void* s, size_t n, uint64_t* w, uint64_t v,     \
                                    int op, int pe) {                                              \
    shmem_##NAME##_put_signal(d, s, n, w, v, op, pe);                                              \
  }                                                                                                \
  static void t_##NAME##_put_signal_nbi(void* d, const void* s, size_t n, uint64_t* w, uint64_t v, \
                                        int op, int pe) {                                          \
    shmem_##NAME##_put_signal_nbi(d, s, n, w, v, op, pe);                                          \
  }                                                                                                \
  static void t_##NAME##_p(void* to, const void* from, int pe) {                                   \
    TYPE value;                                                                                    \
    memcpy(&value, from, sizeof value);                                                            \
    shmem_##NAME##_p(to, value, pe);                                                               \
  }                                                                                                \
  static void t_##NAME##_g(void* to, const void* from, int pe) {                                   \
    const TYPE value = shmem_##NAME##_g(from, pe);                                                 \
    memcpy(to, &value, sizeof value);                                                              \
  }
SHMEM_I_RMA(T_TYPED, )
#undef T_TYPED

/* Families without a type take what their neighbours take; they have no forms for one element. */
#define T_TYPED_ROW(NAME, TYPE, ARG)                                             \
  {#NAME,                                                                        \
   sizeof(TYPE),                                                                 \
   sizeof(TYPE) == sizeof(long double) ? T_VALUE_SIZE_longdouble : sizeof(TYPE), \
   t_##NAME##_put,                                                               \
   t_##NAME##_get,                                                               \
   t_##NAME##_put_nbi,                                                           \
   t_##NAME##_get_nbi,                                                           \
   t_##NAME##_put_signal,                                                        \
   t_##NAME##_put_signal_nbi,                                                    \
   t_##NAME##_p,                                                                 \
   t_##NAME##_g},
#define T_BYTES_ROW(SUFFIX, BYTES) \
  {#SUFFIX,                        \
   BYTES,                          \
   BYTES,                          \
   shmem_put##SUFFIX,              \
   shmem_get##SUFFIX,              \
   shmem_put##SUFFIX##_nbi,        \
   shmem_get##SUFFIX##_nbi,        \
   shmem_put##SUFFIX##_signal,     \
   shmem_put##SUFFIX##_signal_nbi, \
   NULL,                           \
   NULL},
#define T_SIZED_ROW(SIZE, ARG) T_BYTES_ROW(SIZE, SIZE / 8)

static const struct family t_families[] = {SHMEM_I_RMA(T_TYPED_ROW, ) SHMEM_I_SIZES(T_SIZED_ROW, )
                                               T_BYTES_ROW(mem, 1)};
enum { kFamilies = sizeof t_families / sizeof t_families[0] };

#undef T_TYPED_ROW
#undef T_BYTES_ROW
#undef T_SIZED_ROW

#endif
