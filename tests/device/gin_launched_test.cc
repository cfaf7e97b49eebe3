// SPDX-License-Identifier: BSD-3-Clause
// launch: np=1,2,3,7 timeout=150
//
// The GIN suite with PEs of a job as ranks.
#include <shmem.h>

#include "gin_suite.h"

int main() {
  shmem_init();
  ginComm_t comm = nullptr;
  gin_test::must(ginCommCreate(SHMEM_TEAM_WORLD, &comm), "ginCommCreate");
  gin_test::Rank rank{comm, shmem_my_pe(), shmem_n_pes(), [] { shmem_barrier_all(); }};
  {
    gin_test::Suite suite(rank);
    suite.run();
  }
  gin_test::must(ginCommDestroy(comm), "ginCommDestroy");
  shmem_finalize();
  return gin_test::failures.load() == 0 ? 0 : 1;
}
