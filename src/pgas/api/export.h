// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_API_EXPORT_H
#define GIMLET_PGAS_API_EXPORT_H

// The library hides its symbols; the declarations of these headers are what leaves it.
#pragma GCC visibility push(default)
#include "pshmem.h"
#include "shmem.h"
#pragma GCC visibility pop
// Read a second time: the definitions below need the type lists that <shmem.h> has undefined.
#include "gimlet/shmem_types.h"

/// Defines pshmem_NAME and makes shmem_NAME a weak second name of it, so that a profiling tool can
/// put its own shmem_NAME in front. Followed by the body. Inside the library neither name is ever
/// called.
#define GIMLET_SHMEM(RESULT, NAME, ...)                                                      \
  extern "C" RESULT shmem_##NAME(__VA_ARGS__) __attribute__((weak, alias("pshmem_" #NAME))); \
  extern "C" RESULT pshmem_##NAME(__VA_ARGS__)

#endif
