/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OpenSHMEM for host code: C11 and C++.
 *
 * Terms used below. Symmetric: the same object on every PE, in the symmetric heap or a global or
 * static variable of the executable; a symmetric pointer argument names the object of PE `pe`,
 * although its value is the caller's own address. Elements: units of the type in the name. Every
 * function may be called by any number of threads at once when shmem_init_thread() gave
 * SHMEM_THREAD_MULTIPLE. An argument that is not allowed (a PE that does not exist, an address that
 * is not symmetric, a range past the end of the heap) ends the job with one sentence that names PE,
 * call and value.
 */
#ifndef SHMEM_H
#define SHMEM_H

#include <stddef.h>
#include <stdint.h>

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN 64
#define SHMEM_VENDOR_STRING "Gimlet 0.1.0"

#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_LE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_GE 5

#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

/* Handles are small numbers in the clothes of pointers, so that kernels can use them as table
 * indexes. */
typedef struct shmem_team* shmem_team_t;
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)1)

#ifdef __cplusplus
extern "C" {
#endif

#include "gimlet/shmem_types.h"

#define SHMEM_I_(NAME) shmem_##NAME
#include "gimlet/shmem_prototypes.h"
#undef SHMEM_I_

#include "gimlet/shmem_types_end.h"

#ifdef __cplusplus
}
#endif

#endif
