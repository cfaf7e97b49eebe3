# SPDX-License-Identifier: BSD-3-Clause
# Every example is built, installed, and run by make check through tests/run-launched.
examplesdir = $(pkglibdir)/examples
examples_PROGRAMS = %D%/gin_alltoall
%C%_gin_alltoall_SOURCES = %D%/gin_alltoall.cc
%C%_gin_alltoall_LDADD = libgimlet.la
TESTS += $(examples_PROGRAMS)
