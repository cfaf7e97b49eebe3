/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHMEM_MPP_SHMEMX_H
#define SHMEM_MPP_SHMEMX_H

#include <shmemx.h>

#endif
