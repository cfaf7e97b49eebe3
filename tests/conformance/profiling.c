/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=1,2 */
/*
 * Chapter 10: a tool puts its own shmem_ function in front and calls the pshmem_ one; the library
 * calls neither, so that nothing is counted twice.
 */
#include <pshmem.h>

#include "conformance.h"

static int puts_seen, mallocs_seen, barriers_seen, quiets_seen, inits_seen;

void shmem_init(void) {
  ++inits_seen;
  pshmem_init();
}

void shmem_long_p(long* dest, long value, int pe) {
  ++puts_seen;
  pshmem_long_p(dest, value + 1, pe); /* to tell that it was this one */
}

void* shmem_malloc(size_t size) {
  ++mallocs_seen;
  return pshmem_malloc(size);
}

void shmem_barrier_all(void) {
  ++barriers_seen;
  pshmem_barrier_all();
}

void shmem_quiet(void) {
  ++quiets_seen;
  pshmem_quiet();
}

int main(void) {
  t_start();
  t_check(inits_seen == 1, "init was seen %d times", inits_seen);
  long* word = shmem_malloc(sizeof *word);
  void* zero = shmem_calloc(4, 4);
  void* other = shmem_realloc(zero, 100000);
  t_check(mallocs_seen == 1 && barriers_seen == 0 && quiets_seen == 0,
          "inside calls the tool saw %d mallocs, %d barriers, %d quiets", mallocs_seen - 1,
          barriers_seen, quiets_seen);
  *word = 0;
  shmem_barrier_all();
  shmem_long_p(word, 41, (t_me + 1) % t_pes);
  shmem_long_put(word, &(long){7}, 0, 0);
  shmem_barrier_all();
  t_check(puts_seen == 1 && barriers_seen == 2 && quiets_seen == 0,
          "the tool saw %d puts, %d barriers, %d quiets", puts_seen, barriers_seen, quiets_seen);
  t_check(*word == 42, "the put of the tool left %ld", *word);
  shmem_free(other);
  return t_finish();
}
