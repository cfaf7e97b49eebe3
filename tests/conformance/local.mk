# SPDX-License-Identifier: BSD-3-Clause
# One program per group of clauses of the OpenSHMEM document; tests/run-launched launches them.
EXTRA_DIST += %D%/conformance.h %D%/families.h

check_PROGRAMS += %D%/rma
TESTS += %D%/rma
%C%_rma_SOURCES = %D%/rma.c
%C%_rma_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_rma_LDADD = libgimlet.la

check_PROGRAMS += %D%/rma_large
TESTS += %D%/rma_large
%C%_rma_large_SOURCES = %D%/rma_large.c
%C%_rma_large_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_rma_large_LDADD = libgimlet.la

check_PROGRAMS += %D%/put_signal
TESTS += %D%/put_signal
%C%_put_signal_SOURCES = %D%/put_signal.c
%C%_put_signal_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_put_signal_LDADD = libgimlet.la

check_PROGRAMS += %D%/amo
TESTS += %D%/amo
%C%_amo_SOURCES = %D%/amo.c
%C%_amo_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_amo_LDADD = libgimlet.la

check_PROGRAMS += %D%/amo_contention
TESTS += %D%/amo_contention
%C%_amo_contention_SOURCES = %D%/amo_contention.c
%C%_amo_contention_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_amo_contention_LDADD = libgimlet.la
