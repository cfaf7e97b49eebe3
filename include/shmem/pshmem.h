/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Profiling interface: every shmem_ function under its pshmem_ name. A tool defines the shmem_ name
 * (which is weak in the library) and calls the pshmem_ one.
 */
#ifndef PSHMEM_H
#define PSHMEM_H

#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "gimlet/shmem_types.h"

#define SHMEM_I_(NAME) pshmem_##NAME
#include "gimlet/shmem_prototypes.h"
#undef SHMEM_I_

#include "gimlet/shmem_types_end.h"

#ifdef __cplusplus
}
#endif

#endif
