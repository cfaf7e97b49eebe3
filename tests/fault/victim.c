/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * victim WHAT: every PE prints its number and process, then PE 1 goes about something that it never
 * ends, since it is to be killed there, while the others do WHAT.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t word;
static unsigned char in_bss[1 << 20];

static void say(void) {
  printf("%d %d\n", shmem_my_pe(), (int)getpid());
  fflush(stdout);
}

/* PE 1 never comes to shmem_init. The number is the launcher's here. */
static int is_missing(void) {
  const char* rank = getenv("PMIX_RANK");
  return rank != NULL && strcmp(rank, "1") == 0;
}

static void work_with(int pe, uint64_t* heap) {
  static unsigned char buffer[sizeof in_bss];
  for (;;) {
    shmem_getmem(buffer, in_bss, sizeof in_bss, pe);
    shmem_putmem(in_bss, buffer, sizeof in_bss, pe);
    (void)shmem_uint64_atomic_fetch_add(heap, 1, pe);
    shmem_quiet();
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 99;
  if (strcmp(argv[1], "start") == 0) {
    if (is_missing()) {
      printf("1 %d\n", (int)getpid());
      fflush(stdout);
      sleep(600);
    }
    shmem_init();
    return 98;
  }
  shmem_init();
  uint64_t* heap = shmem_calloc(1, sizeof *heap);
  shmem_barrier_all();
  say();
  for (volatile unsigned long turns = 0; shmem_my_pe() == 1;) turns = turns + 1;
  if (strcmp(argv[1], "barrier") == 0) shmem_barrier_all();
  if (strcmp(argv[1], "wait") == 0) (void)shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 1);
  if (strcmp(argv[1], "finalize") == 0) shmem_finalize();
  if (strcmp(argv[1], "malloc") == 0) (void)shmem_malloc(100);
  if (strcmp(argv[1], "work") == 0) work_with(1, heap);
  for (volatile unsigned long turns = 0; strcmp(argv[1], "compute") == 0;) turns = turns + 1;
  sleep(600);
  return 97;
}
