/* SPDX-License-Identifier: BSD-3-Clause */
/* Extensions of Gimlet to OpenSHMEM. This release has none for host code. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include <shmem.h>

#endif
