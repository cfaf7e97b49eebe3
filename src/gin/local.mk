# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libgimlet_gin.la
libgimlet_gin_la_CPPFLAGS = $(AM_CPPFLAGS)
libgimlet_gin_la_SOURCES = \
	%D%/agreed_settings.cc %D%/agreed_settings.h \
	%D%/api.cc \
	%D%/communicator.cc %D%/communicator.h \
	%D%/device_text.cc %D%/device_text.h \
	%D%/error_word.cc %D%/error_word.h \
	%D%/lsa_team.cc %D%/lsa_team.h \
	%D%/memory_table.cc %D%/memory_table.h \
	%D%/path/path.h \
	%D%/path/direct/direct_path.cc %D%/path/direct/direct_path.h \
	%D%/path/direct/mapped_carrier.cc %D%/path/direct/mapped_carrier.h \
	%D%/path/proxy/engine_counters.h \
	%D%/path/proxy/error_note.h \
	%D%/path/proxy/heard_error.h \
	%D%/path/proxy/open_requests.h \
	%D%/path/proxy/proxies.cc %D%/path/proxy/proxies.h \
	%D%/path/proxy/proxy.cc %D%/path/proxy/proxy.h \
	%D%/path/proxy/proxy_path.cc %D%/path/proxy/proxy_path.h \
	%D%/path/proxy/reordering_carrier.cc %D%/path/proxy/reordering_carrier.h \
	%D%/path/proxy/ring_consumer.h \
	%D%/path/proxy/ring_memory.cc %D%/path/proxy/ring_memory.h \
	%D%/resource_layout.cc %D%/resource_layout.h \
	%D%/status_result.cc %D%/status_result.h \
	%D%/wait_report.cc %D%/wait_report.h \
	%D%/window_table.cc %D%/window_table.h
