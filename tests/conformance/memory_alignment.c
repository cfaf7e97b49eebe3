/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=1,2,4 transport=auto */
/*
 * 9.3.3: an alignment that not every PE can give is given by none: mappings of several GiB lie at
 * addresses that are aligned to more than was asked for on some PEs, by chance.
 */
#include "conformance.h"

int main(void) {
  unsetenv("SMA_SYMMETRIC_SIZE");
  setenv("SHMEM_SYMMETRIC_SIZE", "9g", 1); /* addresses; few pages of it are ever touched */
  t_start();
  static long given;
  for (size_t alignment = (size_t)1 << 27; alignment <= (size_t)1 << 33; alignment *= 2) {
    given = 0;
    shmem_barrier_all();
    void* block = shmem_align(alignment, 64);
    t_check((uintptr_t)block % alignment == 0, "align(%zu, 64) gives %p", alignment, block);
    t_check(block != NULL || alignment > (size_t)1 << 30, "align(%zu, 64) gives nothing",
            alignment);
    shmem_long_atomic_add(&given, block != NULL, 0);
    shmem_barrier_all();
    const long all = shmem_long_g(&given, 0);
    t_check(all == 0 || all == t_pes, "align(%zu, 64) gives memory on %ld of %d PEs", alignment,
            all, t_pes);
    shmem_barrier_all();
    shmem_free(block);
  }
  return t_finish();
}
