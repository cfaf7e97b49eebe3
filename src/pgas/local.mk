# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libgimlet_pgas.la
libgimlet_pgas_la_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS) $(UCX_CFLAGS) $(HWLOC_CFLAGS)
libgimlet_pgas_la_SOURCES = \
	%D%/api/amo.cc \
	%D%/api/compare.h \
	%D%/api/export.h \
	%D%/api/memory.cc \
	%D%/api/ordering.cc \
	%D%/api/p2p_sync.cc \
	%D%/api/rma.cc \
	%D%/api/setup.cc \
	%D%/api/signal.cc \
	%D%/bootstrap/bootstrap.h \
	%D%/bootstrap/pmix.cc \
	%D%/bootstrap/single.cc \
	%D%/collectives/sync.cc \
	%D%/group.h \
	%D%/local_group.cc \
	%D%/helper.cc %D%/helper.h \
	%D%/memory_barrier.h \
	%D%/ordering.cc \
	%D%/pe.cc %D%/pe.h \
	%D%/segment/control_area.h \
	%D%/segment/data_segment.cc %D%/segment/data_segment.h \
	%D%/segment/descriptor_exchange.cc %D%/segment/descriptor_exchange.h \
	%D%/segment/offset_allocator.cc %D%/segment/offset_allocator.h \
	%D%/transport/bounce_pool.h \
	%D%/transport/carrier.h \
	%D%/transport/carry_out.cc %D%/transport/carry_out.h \
	%D%/transport/listener_table.h \
	%D%/transport/local_carrier.cc %D%/transport/local_carrier.h \
	%D%/transport/staged_segments.cc %D%/transport/staged_segments.h \
	%D%/transport/staging_carrier.cc %D%/transport/staging_carrier.h \
	%D%/transport/transport.h \
	%D%/transport/ucx_carrier.cc \
	%D%/transport/ucx_lanes.cc \
	%D%/transport/ucx_memory.cc %D%/transport/ucx_memory.h \
	%D%/transport/ucx_operation.cc %D%/transport/ucx_operation.h \
	%D%/transport/ucx_requests.cc \
	%D%/transport/ucx_serve.cc \
	%D%/transport/ucx_stage.cc \
	%D%/transport/ucx_staging.cc %D%/transport/ucx_staging.h \
	%D%/transport/ucx_transport.cc %D%/transport/ucx_transport.h \
	%D%/transport/ucx_wire.cc %D%/transport/ucx_wire.h \
	%D%/transport/ucx_worker.cc %D%/transport/ucx_worker.h \
	%D%/world_group.cc
