/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every function once; SHMEM_I_(name) gives it its prefix: shmem_ in <shmem.h>, pshmem_ in
 * <pshmem.h>. No include guard: it is read once for each prefix. Sections are those of the
 * OpenSHMEM 1.6 document.
 */

#ifndef SHMEM_I_NORETURN
#ifdef __cplusplus
#define SHMEM_I_NORETURN [[noreturn]]
#else
#define SHMEM_I_NORETURN _Noreturn
#endif
#endif

/* ---- Setup, exit and query (9.1, 9.2). Since 0.1. ---- */

/*
 * Joins this process to the job as one PE: maps the symmetric heaps of the node. Collective over
 * all PEs on the first call; further calls count, and each is undone by one shmem_finalize().
 * Thread level SHMEM_THREAD_SINGLE is asked for. Without a launcher the process is PE 0 of 1. Ends
 * the program with a sentence when it can't start.
 */
void SHMEM_I_(init)(void);
/*
 * The same, asking for a thread level. *provided is the level in force, always
 * SHMEM_THREAD_MULTIPLE. Returns 0, or non-zero when the level is none of the four or *provided is
 * null.
 */
int SHMEM_I_(init_thread)(int requested, int* provided);
/* The thread level in force. */
void SHMEM_I_(query_thread)(int* provided);
/* *initialized is 1 between the first init and the last finalize, else 0. Any thread, any time. */
void SHMEM_I_(query_initialized)(int* initialized);
/*
 * Collective. Completes all communication, waits for all PEs; the last call that matches the first
 * init frees the symmetric heap. Init works again afterwards.
 */
void SHMEM_I_(finalize)(void);
/*
 * Ends all PEs whatever they do; the launcher exits with `status` (one of them when several PEs
 * call). Not collective, any thread, any state; flushes stdio; does not return.
 */
SHMEM_I_NORETURN void SHMEM_I_(global_exit)(int status);
/* Number of this PE, 0 to n_pes - 1; number of PEs. -1 before init. One load. */
int SHMEM_I_(my_pe)(void);
int SHMEM_I_(n_pes)(void);
/* 1 when `pe` exists and can be communicated with, else 0. */
int SHMEM_I_(pe_accessible)(int pe);
/* 1 when `addr` is symmetric (heap, or static data of the executable) and `pe` exists, else 0. */
int SHMEM_I_(addr_accessible)(const void* addr, int pe);
/*
 * Address at which this PE can load and store PE `pe`'s copy of `dest`, or NULL: another node,
 * static data of another PE, GIMLET_TRANSPORT=ucx, no such PE, not symmetric. The result is not a
 * symmetric address.
 */
void* SHMEM_I_(ptr)(const void* dest, int pe);
/* Version of the standard that names and semantics follow. */
void SHMEM_I_(info_get_version)(int* major, int* minor);
/* SHMEM_VENDOR_STRING, at most SHMEM_MAX_NAME_LEN bytes with the final null. */
void SHMEM_I_(info_get_name)(char* name);

/* ---- Symmetric memory (9.3). Collective over all PEs, with equal arguments. Since 0.1. ---- */

/*
 * `size` bytes, aligned to 64, at the same offset in the heap of every PE; NULL on every PE when
 * the heap is too small (and a sentence names SHMEM_SYMMETRIC_SIZE). Ends with a barrier. Size 0:
 * NULL, no barrier.
 */
void* SHMEM_I_(malloc)(size_t size);
/* The same, zero. An overflowing product gives NULL. */
void* SHMEM_I_(calloc)(size_t count, size_t size);
/* `alignment`: a power of two, a multiple of sizeof(void *), at most the largest power of two in
 * the heap size and at most 1 GiB; else NULL. */
void* SHMEM_I_(align)(size_t alignment, size_t size);
/* Begins with a barrier. `ptr`: NULL (no action, no barrier) or what an allocation returned; else
 * the job ends. */
void SHMEM_I_(free)(void* ptr);
/* Changes the size, keeping the contents up to the smaller size; may move. On failure NULL, the
 * block stays. Barriers. */
void* SHMEM_I_(realloc)(void* ptr, size_t size);

/* ---- Remote memory access (9.6). Since 0.1. ----
 *
 * dest of put and source of get are symmetric; the other side is any local memory. nelems elements
 * (bits of the number in the name for sized forms, bytes for mem), 0 allowed with any pointers.
 * Buffers must not overlap. put and p return when the source may be reused; the data is visible at
 * the target after quiet, a barrier, or in order after fence. get and g return with the data. The
 * _nbi forms return at once; both buffers are in use until quiet. On a node: loads and stores, no
 * call below. Aligned transfers of one element of 1, 2, 4 or 8 bytes are single accesses. fence
 * orders puts of the calling PE per target; gets are ordered by their return.
 */
#define SHMEM_I_TYPED(NAME, TYPE, ARG)                                                       \
  void SHMEM_I_(NAME##_put)(TYPE * dest, const TYPE* source, size_t nelems, int pe);         \
  void SHMEM_I_(NAME##_get)(TYPE * dest, const TYPE* source, size_t nelems, int pe);         \
  void SHMEM_I_(NAME##_put_nbi)(TYPE * dest, const TYPE* source, size_t nelems, int pe);     \
  void SHMEM_I_(NAME##_get_nbi)(TYPE * dest, const TYPE* source, size_t nelems, int pe);     \
  void SHMEM_I_(NAME##_p)(TYPE * dest, TYPE value, int pe);                                  \
  TYPE SHMEM_I_(NAME##_g)(const TYPE* source, int pe);                                       \
  void SHMEM_I_(NAME##_put_signal)(TYPE * dest, const TYPE* source, size_t nelems,           \
                                   uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void SHMEM_I_(NAME##_put_signal_nbi)(TYPE * dest, const TYPE* source, size_t nelems,       \
                                       uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
SHMEM_I_RMA(SHMEM_I_TYPED, )
#undef SHMEM_I_TYPED

#define SHMEM_I_SIZED(SIZE, ARG)                                                              \
  void SHMEM_I_(put##SIZE)(void* dest, const void* source, size_t nelems, int pe);            \
  void SHMEM_I_(get##SIZE)(void* dest, const void* source, size_t nelems, int pe);            \
  void SHMEM_I_(put##SIZE##_nbi)(void* dest, const void* source, size_t nelems, int pe);      \
  void SHMEM_I_(get##SIZE##_nbi)(void* dest, const void* source, size_t nelems, int pe);      \
  void SHMEM_I_(put##SIZE##_signal)(void* dest, const void* source, size_t nelems,            \
                                    uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void SHMEM_I_(put##SIZE##_signal_nbi)(void* dest, const void* source, size_t nelems,        \
                                        uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
SHMEM_I_SIZES(SHMEM_I_SIZED, )
#undef SHMEM_I_SIZED

void SHMEM_I_(putmem)(void* dest, const void* source, size_t nelems, int pe);
void SHMEM_I_(getmem)(void* dest, const void* source, size_t nelems, int pe);
void SHMEM_I_(putmem_nbi)(void* dest, const void* source, size_t nelems, int pe);
void SHMEM_I_(getmem_nbi)(void* dest, const void* source, size_t nelems, int pe);

/* ---- Signals (9.8). Since 0.1. ----
 *
 * A put with signal updates the 8-byte symmetric word sig_addr of PE `pe` (SHMEM_SIGNAL_SET or
 * SHMEM_SIGNAL_ADD of `signal`) after its own payload is visible there, zero elements included;
 * earlier puts are not covered. Signal updates are atomic against each other with the same operator
 * and against signal_fetch and waits.
 */
void SHMEM_I_(putmem_signal)(void* dest, const void* source, size_t nelems, uint64_t* sig_addr,
                             uint64_t signal, int sig_op, int pe);
void SHMEM_I_(putmem_signal_nbi)(void* dest, const void* source, size_t nelems, uint64_t* sig_addr,
                                 uint64_t signal, int sig_op, int pe);
/* Updates the signal word alone; unordered to puts unless fence stands between. */
void SHMEM_I_(signal_add)(uint64_t* sig_addr, uint64_t signal, int pe);
void SHMEM_I_(signal_set)(uint64_t* sig_addr, uint64_t signal, int pe);
/* Atomic load of this PE's own signal word, with acquire semantics. */
uint64_t SHMEM_I_(signal_fetch)(const uint64_t* sig_addr);
/* Waits until this PE's word compares as asked (SHMEM_CMP_*); returns the value that did. Acquire.
 */
uint64_t SHMEM_I_(signal_wait_until)(uint64_t* sig_addr, int cmp, uint64_t cmp_value);

/* ---- Atomic memory operations (9.7). Since 0.1. ----
 *
 * On one element of symmetric memory, aligned to its size, of PE `pe`. Operations of the same type
 * on the same word exclude each other, from any PE. Fetching forms return the value before the
 * update and have completed on return; the others complete at quiet. _nbi forms write *fetch by
 * quiet at the latest.
 */
#define SHMEM_I_EXT(NAME, TYPE, ARG)                                                \
  TYPE SHMEM_I_(NAME##_atomic_fetch)(const TYPE* source, int pe);                   \
  void SHMEM_I_(NAME##_atomic_set)(TYPE * dest, TYPE value, int pe);                \
  TYPE SHMEM_I_(NAME##_atomic_swap)(TYPE * dest, TYPE value, int pe);               \
  void SHMEM_I_(NAME##_atomic_fetch_nbi)(TYPE * fetch, const TYPE* source, int pe); \
  void SHMEM_I_(NAME##_atomic_swap_nbi)(TYPE * fetch, TYPE * dest, TYPE value, int pe);
SHMEM_I_AMO_EXT(SHMEM_I_EXT, )
#undef SHMEM_I_EXT

#define SHMEM_I_STD(NAME, TYPE, ARG)                                                              \
  TYPE SHMEM_I_(NAME##_atomic_compare_swap)(TYPE * dest, TYPE cond, TYPE value, int pe);          \
  TYPE SHMEM_I_(NAME##_atomic_fetch_inc)(TYPE * dest, int pe);                                    \
  void SHMEM_I_(NAME##_atomic_inc)(TYPE * dest, int pe);                                          \
  TYPE SHMEM_I_(NAME##_atomic_fetch_add)(TYPE * dest, TYPE value, int pe);                        \
  void SHMEM_I_(NAME##_atomic_add)(TYPE * dest, TYPE value, int pe);                              \
  void SHMEM_I_(NAME##_atomic_compare_swap_nbi)(TYPE * fetch, TYPE * dest, TYPE cond, TYPE value, \
                                                int pe);                                          \
  void SHMEM_I_(NAME##_atomic_fetch_inc_nbi)(TYPE * fetch, TYPE * dest, int pe);                  \
  void SHMEM_I_(NAME##_atomic_fetch_add_nbi)(TYPE * fetch, TYPE * dest, TYPE value, int pe);
SHMEM_I_AMO_STD(SHMEM_I_STD, )
#undef SHMEM_I_STD

#define SHMEM_I_BIT_OP(NAME, TYPE, OP)                                      \
  TYPE SHMEM_I_(NAME##_atomic_fetch_##OP)(TYPE * dest, TYPE value, int pe); \
  void SHMEM_I_(NAME##_atomic_##OP)(TYPE * dest, TYPE value, int pe);       \
  void SHMEM_I_(NAME##_atomic_fetch_##OP##_nbi)(TYPE * fetch, TYPE * dest, TYPE value, int pe);
SHMEM_I_AMO_BIT(SHMEM_I_BIT_OP, and)
SHMEM_I_AMO_BIT(SHMEM_I_BIT_OP, or)
SHMEM_I_AMO_BIT(SHMEM_I_BIT_OP, xor)
#undef SHMEM_I_BIT_OP

/* ---- Point-to-point synchronisation (9.11). Since 0.1. ----
 *
 * On this PE's own copy of a symmetric element that a peer updates. cmp is one of SHMEM_CMP_*; the
 * comparison has the signedness of the type. wait_until returns when it holds; test returns 1 when
 * it holds now, else 0. Both acquire: what the peer ordered before the update is visible
 * afterwards. A wait spins, then yields the core, then sleeps briefly.
 */
#define SHMEM_I_P2P(NAME, TYPE, ARG)                                      \
  void SHMEM_I_(NAME##_wait_until)(TYPE * ivar, int cmp, TYPE cmp_value); \
  int SHMEM_I_(NAME##_test)(TYPE * ivar, int cmp, TYPE cmp_value);
SHMEM_I_AMO_STD(SHMEM_I_P2P, )
SHMEM_I_P2P_SHORT(SHMEM_I_P2P, )
#undef SHMEM_I_P2P

/* ---- Ordering (9.12) and collectives over all PEs (9.10). Since 0.1. ---- */

/* Orders puts, updates and signals of this PE issued before it ahead of those issued after it, per
 * target PE. */
void SHMEM_I_(fence)(void);
/* Returns when all communication of this PE, _nbi included, is complete and visible to all PEs. */
void SHMEM_I_(quiet)(void);
/* quiet, then returns when every PE has entered. Cost: log2(PEs) messages. */
void SHMEM_I_(barrier_all)(void);
/* Returns when every PE has entered; completes no communication but makes the caller's own stores
 * visible. */
void SHMEM_I_(sync_all)(void);

#undef SHMEM_I_NORETURN
