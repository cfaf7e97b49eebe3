# SPDX-License-Identifier: BSD-3-Clause
# One program per group of clauses of the OpenSHMEM document; tests/run-launched launches them.
EXTRA_DIST += %D%/conformance.h %D%/families.h

check_PROGRAMS += %D%/rma
TESTS += %D%/rma
%C%_rma_SOURCES = %D%/rma.c
%C%_rma_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_rma_LDADD = libgimlet.la
