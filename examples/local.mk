# SPDX-License-Identifier: BSD-3-Clause
# Every example is built, installed, and run by make check through tests/run-launched.
examplesdir = $(pkglibdir)/examples
examples_PROGRAMS = %D%/gin_alltoall %D%/shmem_ring
%C%_gin_alltoall_SOURCES = %D%/gin_alltoall.cc
%C%_gin_alltoall_LDADD = libgimlet.la
%C%_shmem_ring_SOURCES = %D%/shmem_ring.c
%C%_shmem_ring_LDADD = libgimlet.la
if HAVE_MPI_FLAGS
examples_PROGRAMS += %D%/hybrid_mpi
endif
%C%_hybrid_mpi_SOURCES = %D%/hybrid_mpi.c
%C%_hybrid_mpi_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
%C%_hybrid_mpi_LDADD = libgimlet.la $(MPI_LIBS)
TESTS += %D%/gin_alltoall %D%/shmem_ring
