# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libgimlet_device.la
libgimlet_device_la_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS)
libgimlet_device_la_SOURCES = \
	%D%/backoff.cc %D%/backoff.h \
	%D%/bell.cc %D%/bell.h \
	%D%/clock.h \
	%D%/cores.cc %D%/cores.h \
	%D%/cpu/block.cc %D%/cpu/block.h \
	%D%/cpu/block_sync.cc %D%/cpu/block_sync.h \
	%D%/cpu/device_thread.cc %D%/cpu/device_thread.h \
	%D%/cpu/executor.cc %D%/cpu/executor.h \
	%D%/cpu/fiber_block.cc %D%/cpu/fiber_block.h \
	%D%/cpu/hooks.cc %D%/cpu/hooks.h \
	%D%/cpu/jump.cc %D%/cpu/jump.h \
	%D%/cpu/kernel_name.cc %D%/cpu/kernel_name.h \
	%D%/cpu/launch.h \
	%D%/cpu/monitor.cc %D%/cpu/monitor.h \
	%D%/cpu/sanitizer.h \
	%D%/cpu/shared_arena.cc %D%/cpu/shared_arena.h \
	%D%/cpu/stack_fault.cc %D%/cpu/stack_fault.h \
	%D%/cpu/stack_pool.cc %D%/cpu/stack_pool.h \
	%D%/cpu/thread_run.cc %D%/cpu/thread_run.h \
	%D%/cpu/thread_trace.cc %D%/cpu/thread_trace.h \
	%D%/cpu/worker.cc %D%/cpu/worker.h \
	%D%/guarded_memory.cc %D%/guarded_memory.h \
	%D%/host_memory.cc \
	%D%/log.cc %D%/log.h \
	%D%/memory_kind.cc %D%/memory_kind.h \
	%D%/placement.cc %D%/placement.h \
	%D%/settings.cc %D%/settings.def %D%/settings.h \
	%D%/status.h \
	%D%/unique_fd.h
