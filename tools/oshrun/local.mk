# SPDX-License-Identifier: BSD-3-Clause
# The launcher stands alone: it does not link the library.
bin_PROGRAMS += %D%/oshrun
%C%_oshrun_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS) $(HWLOC_CFLAGS)
%C%_oshrun_LDADD = $(PMIX_LIBS) $(HWLOC_LIBS) $(FMT_LIBS) -lpthread
%C%_oshrun_SOURCES = \
	%D%/binding.cc %D%/binding.h \
	%D%/environment.cc %D%/environment.h \
	%D%/handover.cc %D%/handover.h \
	%D%/input.cc %D%/input.h \
	%D%/job.cc %D%/job.h \
	%D%/launch_error.h \
	%D%/main.cc \
	%D%/options.cc %D%/options.h \
	%D%/output.cc %D%/output.h \
	%D%/output_sink.cc %D%/output_sink.h \
	%D%/pmix_info.h \
	%D%/poll_set.cc %D%/poll_set.h \
	%D%/process_table.cc %D%/process_table.h \
	%D%/program.cc %D%/program.h \
	%D%/server.cc %D%/server.h \
	%D%/session.cc %D%/session.h \
	%D%/signals.cc %D%/signals.h \
	%D%/spawn.cc %D%/spawn.h \
	%D%/starter.cc %D%/starter.h \
	%D%/upcall_queue.cc %D%/upcall_queue.h
