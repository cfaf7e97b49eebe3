/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GIMLET_GIN_IMPL_EXEC_H
#define GIMLET_GIN_IMPL_EXEC_H

#include <stddef.h>
#include <stdint.h>

/*
 * What the inline device headers call when a kernel runs on the CPU executor. All of it is exported
 * by libgimlet.so; under nvcc nothing of it is used. User code includes <gin/platform.h> and
 * <gin/launch.h> instead.
 *
 * A device thread is a fiber (or a system thread with GIN_EXECUTOR=threads). A fiber may continue
 * on ANOTHER system thread after every call below that can hand over (yield, wait, look, sync,
 * shuffle, ballot). So nothing that is tied to a system thread (thread-local variables, errno, a
 * held mutex) may be kept across such a call, and gin_exec_self() stays a real call into the
 * library: never mark it pure or const, never cache its result in a thread-local variable. The
 * pointer it returns belongs to the device thread, not to the system thread: it stays valid, and
 * the same, until the kernel returns, so a local variable may hold it.
 *
 * Results are ginResult_t values as int.
 */

#define GIN_EXEC_API __attribute__((visibility("default"), noinline))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gin_exec_dim {
  unsigned x, y, z;
} gin_exec_dim;

/* Who runs: constant for the life of a device thread. */
typedef struct gin_exec_thread {
  gin_exec_dim thread;    /* index in its block */
  gin_exec_dim block;     /* index of the block in the grid */
  gin_exec_dim block_dim; /* threads of a block */
  gin_exec_dim grid_dim;  /* blocks of the grid */
  unsigned rank; /* linear thread number: x + y * block_dim.x + z * block_dim.x * block_dim.y */
  unsigned size; /* threads of the block; lanes are rank % 32, warps rank / 32 */
  const char* kernel; /* name for messages, or NULL */
} gin_exec_thread;

/* The calling device thread; NULL on a host thread. */
GIN_EXEC_API const gin_exec_thread* gin_exec_self(void);
/* Like gin_exec_self(), but a host thread ends the process with one sentence. */
GIN_EXEC_API const gin_exec_thread* gin_exec_here(void);

/*
 * Waiting. Inside a kernel nothing else runs on this worker until the thread hands over, so every
 * wait loop calls one of these in each turn:
 *
 *   while ((seen = load(word)) < awaited) gin_exec_wait(word, seen);
 *
 * The pair (word, seen) is only compared with the pair of the same thread's step before: while it
 * stays the same the executor may conclude that nothing moves and sleep for a while; when it
 * changes the thread counts as progressing. For a wait over several words pass the first and a sum
 * of all. Returns 1 for a device thread and 0 for a host thread, which yields its core. None of
 * these orders memory.
 */
GIN_EXEC_API int gin_exec_wait(const void* word, uint64_t seen);
/* A step that has nothing to compare: __nanosleep and the like. */
GIN_EXEC_API int gin_exec_yield(void);
/* After an atomic operation of user code that may be a turn of a spin: a load, a failed
   compare-exchange, an exchange. Hands over if the thread saw the same at the same place the last
   time, and now and then. A no-op on host threads. */
GIN_EXEC_API void gin_exec_look(const void* word, uint64_t seen);
/* After any other atomic operation or fence: hands over now and then. A no-op on host threads. */
GIN_EXEC_API void gin_exec_touch(void);

/* What a thread waits for. Strings must outlive the kernel (literals). */
typedef struct gin_exec_note {
  const char* call;   /* "waitSignal" */
  const char* object; /* "signal" */
  uint64_t index;     /* which one */
  uint64_t awaited;   /* value that ends the wait; the value seen is that of gin_exec_wait() */
  int rank;           /* rank or PE of the waiting thread, -1: not known */
  int peer;           /* rank or PE that is waited for, -1: any */
} gin_exec_note;

/* Attaches what the calling thread waits for (copied), or with NULL ends that. A wait that lasts
   longer than GIN_WAIT_REPORT is then reported once, with rank, kernel, block, thread, object,
   value and awaited value, one line for all threads of a block that wait for the same. Meant for
   the slow part of a wait loop, after some tens of fruitless looks. A no-op on host threads. */
GIN_EXEC_API void gin_exec_set_note(const gin_exec_note* note);
/* A host thread changed something that device threads may wait for: sleeping workers look again.
   Cheap when none sleeps. */
GIN_EXEC_API void gin_exec_wake(void);

/* Barriers. They order memory between the threads that meet. A thread that has returned from the
   kernel is no longer waited for. A barrier that can't complete any more ends the launch with an
   error that names it. */
GIN_EXEC_API void gin_exec_sync_block(void);
/* As gin_exec_sync_block(); returns in how many threads predicate was not 0. */
GIN_EXEC_API int gin_exec_sync_block_count(int predicate);
/* Threads of the calling warp; all of them pass the same mask, which contains the caller. */
GIN_EXEC_API void gin_exec_sync_warp(uint32_t mask);
/* Whole warps: threads is 32 * (number of warps), also when the block's last warp is partial.
   id is 0 to 15; one id serves one set of warps at a time. */
GIN_EXEC_API void gin_exec_sync_named(unsigned id, unsigned threads);

/* Warp exchange; synchronises like gin_exec_sync_warp(mask). */
/* The value that lane source (0 to 31) passed; the own value if source is not in mask or gone. */
GIN_EXEC_API uint64_t gin_exec_shuffle(uint32_t mask, uint64_t value, unsigned source);
/* Bit n is set when lane n of mask passed a predicate that is not 0. */
GIN_EXEC_API uint32_t gin_exec_ballot(uint32_t mask, int predicate);

/* Block-shared memory. site is the address of a variable that belongs to the declaration: the same
   site gives the same memory to all threads of a block. Not initialised. At most 48 KiB for all
   sites of a block; more ends the launch with an error. */
GIN_EXEC_API void* gin_exec_shared(const void* site, size_t bytes, size_t align);
/* The shared_bytes of the launch, aligned to 128; NULL when there are none. */
GIN_EXEC_API void* gin_exec_dynamic_shared(void);

/* Ends the launch of the calling device thread with `result` and one sentence on standard error
   (NULL: it is told elsewhere); its other threads stop where they are, at their next hand-over,
   without running destructors. On a host thread it ends the process. Does not return. */
GIN_EXEC_API void gin_exec_fail(int result, const char* sentence) __attribute__((noreturn));

typedef struct gin_exec_stream gin_exec_stream;

typedef struct gin_exec_launch_config {
  gin_exec_dim grid;
  gin_exec_dim block;
  size_t shared_bytes;
  gin_exec_stream* stream; /* NULL: the default stream of the calling host thread */
  int cooperative;         /* not 0: all blocks at the same time, or refused */
} gin_exec_launch_config;

typedef struct gin_exec_kernel {
  void (*call)(void* args);    /* run by every device thread */
  void (*destroy)(void* args); /* called once, after the last thread or on refusal; may be NULL */
  void* args;
  const void* function; /* the user's kernel, to find its name; may be NULL */
  const char* name;     /* used when function gives no name; may be NULL */
} gin_exec_kernel;

/* Queues a launch and returns. Takes kernel->args over in every case. An error is one sentence on
   standard error and a ginResult_t. */
GIN_EXEC_API int gin_exec_launch(const gin_exec_launch_config* config,
                                 const gin_exec_kernel* kernel);

/* Launches of one stream run one after the other; different streams run at the same time. */
GIN_EXEC_API int gin_exec_stream_create(gin_exec_stream** stream);
/* Its launches still run to their end. */
GIN_EXEC_API int gin_exec_stream_destroy(gin_exec_stream* stream);
/* Waits for all launches of the stream; returns, once, the first error since the last call.
   Launches behind a failed one are dropped until that. */
GIN_EXEC_API int gin_exec_stream_synchronize(gin_exec_stream* stream);
/* As above for all streams of the calling thread's device. */
GIN_EXEC_API int gin_exec_device_synchronize(void);
/* Which device number the calling host thread uses (default 0): ranks that are threads of one
   process take different numbers, so that one's device synchronisation does not wait for another's
   kernels. */
GIN_EXEC_API int gin_exec_set_device(int device);

#ifdef __cplusplus
}
#endif

#endif
