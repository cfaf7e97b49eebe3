# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libgimlet_device.la
libgimlet_device_la_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS)
libgimlet_device_la_SOURCES = \
	%D%/backoff.cc %D%/backoff.h \
	%D%/clock.h \
	%D%/cores.cc %D%/cores.h \
	%D%/host_memory.cc \
	%D%/log.cc %D%/log.h \
	%D%/memory_kind.h \
	%D%/settings.cc %D%/settings.def %D%/settings.h \
	%D%/status.h \
	%D%/unique_fd.h
