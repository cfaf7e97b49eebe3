/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 9.2 and 9.3: shmem_ptr, pe_accessible and addr_accessible, also for what does not exist and what
 * is not symmetric.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>

#include "conformance.h"

static int in_data = 7;
static int in_bss;
static const int in_rodata = 3;

/* A variable of a shared object: not of the executable, so not symmetric. */
static void* of_a_shared_object(void) {
  void* variable = dlsym(RTLD_DEFAULT, "optarg");
  Dl_info info;
  Dl_info own;
  if (variable == NULL || dladdr(variable, &info) == 0 ||
      dladdr((void*)(uintptr_t)&t_start, &own) == 0)
    return NULL;
  return info.dli_fbase == own.dli_fbase ? NULL : variable;
}

static void pointers_reach_the_peer(int* block) {
  const char* transport = getenv("GIMLET_TRANSPORT");
  const bool is_direct = transport == NULL || strcmp(transport, "auto") == 0;
  shmem_barrier_all();
  for (int pe = 0; pe < t_pes; ++pe) {
    int* there = shmem_ptr(&block[t_me], pe);
    if (pe == t_me) t_check(there == &block[t_me], "shmem_ptr of the own PE is another address");
    if (pe == t_me || is_direct) {
      t_check(there != NULL, "shmem_ptr of PE %d is NULL", pe);
    } else {
      t_check(there == NULL, "shmem_ptr of PE %d is %p though stores are not to be used", pe,
              (void*)there);
      shmem_int_p(&block[t_me], 1000 + t_me, pe);
    }
    if (there != NULL) {
      t_check(pe == t_me || there != &block[t_me], "shmem_ptr of PE %d is the own memory", pe);
      *there = 1000 + t_me;
    }
  }
  shmem_barrier_all();
  for (int pe = 0; pe < t_pes; ++pe)
    t_check(block[pe] == 1000 + pe, "PE %d's store through shmem_ptr left %d", pe, block[pe]);
  for (int pe = 0; pe < t_pes; ++pe) {
    const int* there = shmem_ptr(block, pe);
    if (there == NULL) continue;
    t_check(there[t_me] == 1000 + t_me, "PE %d's memory through shmem_ptr has %d", pe, there[t_me]);
  }
  shmem_barrier_all();
}

int main(void) {
  t_check(shmem_pe_accessible(0) == 0 && shmem_addr_accessible(&in_data, 0) == 0 &&
              shmem_ptr(&in_data, 0) == NULL,
          "before init something is accessible");
  t_start();
  int on_stack = 0;
  int* heap = shmem_calloc((size_t)t_pes, sizeof *heap);
  int* private_memory = malloc(sizeof *private_memory);
  void* foreign = of_a_shared_object();

  for (int pe = 0; pe < t_pes; ++pe) {
    t_check(shmem_pe_accessible(pe) == 1, "PE %d is not accessible", pe);
    t_check(shmem_addr_accessible(heap, pe) == 1, "the heap of PE %d is not accessible", pe);
    t_check(shmem_addr_accessible(&heap[t_pes - 1], pe) == 1, "the end of a block is not");
    t_check(shmem_addr_accessible(&in_data, pe) == 1, ".data of PE %d is not accessible", pe);
    t_check(shmem_addr_accessible(&in_bss, pe) == 1, ".bss of PE %d is not accessible", pe);
    t_check(shmem_addr_accessible(&on_stack, pe) == 0, "the stack of PE %d is accessible", pe);
    t_check(shmem_addr_accessible(private_memory, pe) == 0, "malloc memory is accessible");
    t_check(shmem_addr_accessible(&in_rodata, pe) == 0, "a constant is accessible");
    t_check(shmem_addr_accessible(NULL, pe) == 0, "NULL is accessible");
    t_check(foreign == NULL || shmem_addr_accessible(foreign, pe) == 0,
            "data of a shared object is accessible");
    t_check(shmem_ptr(&on_stack, pe) == NULL && shmem_ptr(private_memory, pe) == NULL &&
                shmem_ptr(NULL, pe) == NULL && (foreign == NULL || shmem_ptr(foreign, pe) == NULL),
            "shmem_ptr of what is not symmetric is not NULL");
  }
  static const int nobody[] = {-1, -2, INT_MIN, INT_MAX};
  for (size_t i = 0; i <= sizeof nobody / sizeof nobody[0]; ++i) {
    const int pe = i == sizeof nobody / sizeof nobody[0] ? t_pes : nobody[i];
    t_check(shmem_pe_accessible(pe) == 0, "PE %d is accessible", pe);
    t_check(shmem_addr_accessible(heap, pe) == 0, "the heap of PE %d is accessible", pe);
    t_check(shmem_ptr(heap, pe) == NULL, "shmem_ptr of PE %d is not NULL", pe);
  }
  t_check(shmem_ptr(&in_data, t_me) == &in_data && shmem_ptr(&in_bss, t_me) == &in_bss,
          "shmem_ptr of own static data is not its address");
  pointers_reach_the_peer(heap);
  free(private_memory);
  shmem_free(heap);
  return t_finish();
}
