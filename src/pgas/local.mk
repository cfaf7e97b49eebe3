# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libgimlet_pgas.la
libgimlet_pgas_la_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS) $(UCX_CFLAGS) $(HWLOC_CFLAGS)
libgimlet_pgas_la_SOURCES = \
	%D%/bootstrap/bootstrap.h \
	%D%/group.h \
	%D%/pe.h \
	%D%/transport/transport.h
