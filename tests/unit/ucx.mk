# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += %D%/ucx_transport_test
TESTS += %D%/ucx_transport_test
%C%_ucx_transport_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS) $(UCX_CFLAGS)
%C%_ucx_transport_test_LDADD = $(UNIT_TEST_LIBS)
%C%_ucx_transport_test_SOURCES = %D%/ucx_transport_test.cc \
	%D%/carrier_cases.h %D%/late_memory.h %D%/ucx_world.h
