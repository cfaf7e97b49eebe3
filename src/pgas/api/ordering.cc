// SPDX-License-Identifier: BSD-3-Clause
// OpenSHMEM 1.6, 9.12 and the collectives over all PEs of 9.10.
#include "pgas/api/export.h"
#include "pgas/pe.h"

using gimlet::pgas::Pe;

GIMLET_SHMEM(void, fence, void) {
  Pe::self().fence("shmem_fence");
}

GIMLET_SHMEM(void, quiet, void) {
  Pe::self().quiet("shmem_quiet");
}

GIMLET_SHMEM(void, barrier_all, void) {
  Pe::self().quiet("shmem_barrier_all");
  Pe::self().sync("shmem_barrier_all");
}

GIMLET_SHMEM(void, sync_all, void) {
  Pe::self().sync("shmem_sync_all");
}
