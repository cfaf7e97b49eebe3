# SPDX-License-Identifier: BSD-3-Clause
# One program per group of clauses of the OpenSHMEM document; tests/run-launched launches them.
EXTRA_DIST += %D%/conformance.h %D%/families.h

check_PROGRAMS += %D%/rma
TESTS += %D%/rma
%C%_rma_SOURCES = %D%/rma.c
%C%_rma_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_rma_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/rma_large
TESTS += %D%/rma_large
%C%_rma_large_SOURCES = %D%/rma_large.c
%C%_rma_large_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_rma_large_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/put_signal
TESTS += %D%/put_signal
%C%_put_signal_SOURCES = %D%/put_signal.c
%C%_put_signal_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_put_signal_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/amo
TESTS += %D%/amo
%C%_amo_SOURCES = %D%/amo.c
%C%_amo_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_amo_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/amo_contention
TESTS += %D%/amo_contention
%C%_amo_contention_SOURCES = %D%/amo_contention.c
%C%_amo_contention_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_amo_contention_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/p2p
TESTS += %D%/p2p
%C%_p2p_SOURCES = %D%/p2p.c
%C%_p2p_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_p2p_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/ordering
TESTS += %D%/ordering
%C%_ordering_SOURCES = %D%/ordering.c
%C%_ordering_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_ordering_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/barrier
TESTS += %D%/barrier
%C%_barrier_SOURCES = %D%/barrier.c
%C%_barrier_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_barrier_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/memory
TESTS += %D%/memory
%C%_memory_SOURCES = %D%/memory.c
%C%_memory_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_memory_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/memory_alignment
TESTS += %D%/memory_alignment
%C%_memory_alignment_SOURCES = %D%/memory_alignment.c
%C%_memory_alignment_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_memory_alignment_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/accessible
TESTS += %D%/accessible
%C%_accessible_SOURCES = %D%/accessible.c
%C%_accessible_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_accessible_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/setup
TESTS += %D%/setup
%C%_setup_SOURCES = %D%/setup.c
%C%_setup_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_setup_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/litmus
TESTS += %D%/litmus
%C%_litmus_SOURCES = %D%/litmus.c
%C%_litmus_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_litmus_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/progress
TESTS += %D%/progress
%C%_progress_SOURCES = %D%/progress.c
%C%_progress_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_progress_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/threads
TESTS += %D%/threads
%C%_threads_SOURCES = %D%/threads.c
%C%_threads_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_threads_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/profiling
TESTS += %D%/profiling
%C%_profiling_SOURCES = %D%/profiling.c
%C%_profiling_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_profiling_LDADD = libgimlet.la -ldl -lpthread

check_PROGRAMS += %D%/exits
TESTS += %D%/leaving %D%/litmus_can_fail
EXTRA_DIST += %D%/leaving %D%/litmus_can_fail
%C%_exits_SOURCES = %D%/exits.c
%C%_exits_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_exits_LDADD = libgimlet.la
