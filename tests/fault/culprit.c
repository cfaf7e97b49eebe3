/* SPDX-License-Identifier: BSD-3-Clause */
/* culprit MISTAKE: PE 1 (PE 0, if it is alone) makes a mistake while the others wait in a barrier.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kHeapBytes = 1 << 20 };

static long in_bss[4];
static long local[2 << 20];

static void put_to(int pe) {
  shmem_long_p(in_bss, 1, pe);
}

static void make_mistake(const char* mistake, long* heap) {
  const int me = shmem_my_pe();
  const int next = (me + 1) % shmem_n_pes();
  char* const end = (char*)heap + kHeapBytes;
  long on_stack = 0;
  uint64_t* const word = (uint64_t*)(void*)heap;
  if (strcmp(mistake, "pe_too_large") == 0) shmem_long_p(heap, 1, shmem_n_pes());
  if (strcmp(mistake, "pe_negative") == 0) (void)shmem_long_g(heap, -1);
  if (strcmp(mistake, "pe_of_static") == 0) put_to(99);
  if (strcmp(mistake, "pe_of_amo") == 0) (void)shmem_long_atomic_fetch_add(heap, 1, 7);
  if (strcmp(mistake, "pe_of_signal") == 0) shmem_signal_set(word, 1, 8);
  if (strcmp(mistake, "stack_dest") == 0) shmem_long_put(&on_stack, heap, 1, next);
  if (strcmp(mistake, "stack_source") == 0) shmem_long_get(heap, &on_stack, 1, next);
  if (strcmp(mistake, "null_dest") == 0) shmem_int_put(NULL, (int*)local, 1, next);
  if (strcmp(mistake, "past_heap") == 0) shmem_putmem(end - 8, local, kHeapBytes, next);
  if (strcmp(mistake, "past_heap_get") == 0) shmem_getmem(local, heap, sizeof local, next);
  if (strcmp(mistake, "overflow") == 0) shmem_put128(heap, local, SIZE_MAX / 2, next);
  if (strcmp(mistake, "past_data") == 0) shmem_putmem(in_bss, heap, (size_t)1 << 30, next);
  if (strcmp(mistake, "signal_op") == 0)
    shmem_long_put_signal(heap, local, 1, word + 8, 1, 2, next);
  if (strcmp(mistake, "signal_op_nbi") == 0)
    shmem_putmem_signal_nbi(heap, local, 8, word + 8, 1, -1, next);
  if (strcmp(mistake, "signal_unaligned") == 0)
    shmem_signal_add((uint64_t*)(void*)((char*)heap + 4), 1, next);
  if (strcmp(mistake, "signal_on_stack") == 0)
    shmem_putmem_signal(heap, local, 8, (uint64_t*)&on_stack, 1, SHMEM_SIGNAL_SET, next);
  if (strcmp(mistake, "cmp") == 0) shmem_long_wait_until(heap, 6, 1);
  if (strcmp(mistake, "cmp_of_test") == 0) (void)shmem_int_test((int*)heap, -1, 1);
  if (strcmp(mistake, "cmp_of_signal") == 0) (void)shmem_signal_wait_until(word, 17, 1);
  if (strcmp(mistake, "wait_on_stack") == 0) shmem_long_wait_until(&on_stack, SHMEM_CMP_EQ, 1);
  if (strcmp(mistake, "amo_unaligned") == 0)
    shmem_int_atomic_inc((int*)(void*)((char*)heap + 2), next);
  if (strcmp(mistake, "free_of_stack") == 0) shmem_free(&on_stack);
  if (strcmp(mistake, "free_of_middle") == 0) shmem_free(heap + 8);
  if (strcmp(mistake, "realloc_of_static") == 0) (void)shmem_realloc(in_bss, 100);
  if (strcmp(mistake, "init_level") == 0) {
    int provided = -1;
    exit(shmem_init_thread(4, &provided) != 0 && provided == -1 ? 3 : 4);
  }
}

static void outside(const char* mistake) {
  if (strstr(mistake, "_put") != NULL) put_to(0);
  if (strstr(mistake, "_get") != NULL) (void)shmem_long_g(in_bss, 0);
  if (strstr(mistake, "_amo") != NULL) shmem_long_atomic_inc(in_bss, 0);
  if (strstr(mistake, "_signal") != NULL) shmem_signal_set((uint64_t*)(void*)in_bss, 1, 0);
  if (strstr(mistake, "_malloc") != NULL) (void)shmem_malloc(8);
  if (strstr(mistake, "_barrier") != NULL) shmem_barrier_all();
  if (strstr(mistake, "_sync") != NULL) shmem_sync_all();
  if (strstr(mistake, "_wait") != NULL) shmem_long_wait_until(in_bss, SHMEM_CMP_EQ, 1);
  if (strstr(mistake, "_free") != NULL) shmem_free(in_bss);
  if (strstr(mistake, "_fence") != NULL) shmem_fence();
  if (strstr(mistake, "_quiet") != NULL) shmem_quiet();
}

int main(int argc, char** argv) {
  if (argc != 2) return 99;
  if (strncmp(argv[1], "before_", 7) == 0) outside(argv[1]);
  shmem_init();
  long* heap = shmem_malloc(kHeapBytes);
  if (heap == NULL) return 98;
  if (strncmp(argv[1], "after_", 6) == 0) {
    shmem_finalize();
    outside(argv[1]);
    return 97;
  }
  memset(heap, 0, kHeapBytes);
  const int culprit = shmem_n_pes() > 1;
  shmem_barrier_all();
  if (strncmp(argv[1], "free_", 5) == 0 || strncmp(argv[1], "realloc_", 8) == 0 ||
      shmem_my_pe() == culprit)
    make_mistake(argv[1], heap); /* free and realloc are collective */
  shmem_barrier_all();
  printf("nobody minded\n");
  shmem_finalize();
  return 0;
}
