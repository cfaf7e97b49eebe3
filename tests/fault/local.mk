# SPDX-License-Identifier: BSD-3-Clause
# What goes wrong ends soon and says why; scripts that launch small programs by oshrun.
FAULT_TESTS = %D%/disagreement %D%/killed %D%/on_error %D%/settings %D%/wait_report %D%/wrong_arguments
TESTS += $(FAULT_TESTS)
EXTRA_DIST += $(FAULT_TESTS)

check_PROGRAMS += %D%/after_error %D%/backpressure %D%/culprit %D%/cut_off %D%/failing_kernels \
	%D%/idle %D%/idle_kernels %D%/late %D%/left_open %D%/mixed_settings %D%/victim \
	%D%/victim_kernels
TESTS += %D%/after_error %D%/backpressure %D%/cut_off %D%/idle %D%/idle_kernels %D%/left_open
%C%_after_error_SOURCES = %D%/after_error.cc tests/device/gin_ranks.h
%C%_after_error_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_after_error_LDADD = libgimlet.la
%C%_backpressure_SOURCES = %D%/backpressure.cc
%C%_backpressure_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_backpressure_LDADD = libgimlet.la
%C%_culprit_SOURCES = %D%/culprit.c
%C%_culprit_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_culprit_LDADD = libgimlet.la
%C%_cut_off_SOURCES = %D%/cut_off.cc tests/captured_stderr.h tests/device/gin_ranks.h
%C%_cut_off_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_cut_off_LDADD = libgimlet.la
%C%_failing_kernels_SOURCES = %D%/failing_kernels.cc tests/device/gin_ranks.h
%C%_failing_kernels_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_failing_kernels_LDADD = libgimlet.la
%C%_idle_SOURCES = %D%/idle.c
%C%_idle_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_idle_LDADD = libgimlet.la
%C%_idle_kernels_SOURCES = %D%/idle_kernels.cc
%C%_idle_kernels_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_idle_kernels_LDADD = libgimlet.la
%C%_late_SOURCES = %D%/late.c
%C%_late_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_late_LDADD = libgimlet.la
%C%_left_open_SOURCES = %D%/left_open.cc
%C%_left_open_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_left_open_LDADD = libgimlet.la
%C%_mixed_settings_SOURCES = %D%/mixed_settings.cc tests/device/gin_ranks.h
%C%_mixed_settings_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_mixed_settings_LDADD = libgimlet.la
%C%_victim_SOURCES = %D%/victim.c
%C%_victim_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_victim_LDADD = libgimlet.la
%C%_victim_kernels_SOURCES = %D%/victim_kernels.cc
%C%_victim_kernels_LDFLAGS = $(AM_LDFLAGS) -no-install
%C%_victim_kernels_LDADD = libgimlet.la
