# SPDX-License-Identifier: BSD-3-Clause
ucx_tests = %D%/ucx_staging_test %D%/ucx_transport_test
check_PROGRAMS += $(ucx_tests)
TESTS += $(ucx_tests)
ucx_test_headers = %D%/carrier_cases.h %D%/late_memory.h %D%/ucx_stranger.h %D%/ucx_world.h
%C%_ucx_staging_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS) $(UCX_CFLAGS)
%C%_ucx_staging_test_LDADD = $(UNIT_TEST_LIBS)
%C%_ucx_staging_test_SOURCES = %D%/ucx_staging_test.cc $(ucx_test_headers)
%C%_ucx_transport_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS) $(UCX_CFLAGS)
%C%_ucx_transport_test_LDADD = $(UNIT_TEST_LIBS)
%C%_ucx_transport_test_SOURCES = %D%/ucx_transport_test.cc $(ucx_test_headers)
