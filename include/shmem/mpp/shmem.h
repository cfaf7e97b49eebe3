/* SPDX-License-Identifier: BSD-3-Clause */
/* The old place of <shmem.h>. */
#ifndef SHMEM_MPP_SHMEM_H
#define SHMEM_MPP_SHMEM_H

#include <shmem.h>

#endif
