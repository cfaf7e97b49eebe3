# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/child.h %D%/local_ranks.h %D%/random.h %D%/suite.h

check_PROGRAMS += %D%/offset_allocator_test
TESTS += %D%/offset_allocator_test
%C%_offset_allocator_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_offset_allocator_test_LDADD = $(UNIT_TEST_LIBS)
%C%_offset_allocator_test_SOURCES = %D%/offset_allocator_test.cc

check_PROGRAMS += %D%/descriptor_exchange_test
TESTS += %D%/descriptor_exchange_test
%C%_descriptor_exchange_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_descriptor_exchange_test_LDADD = $(UNIT_TEST_LIBS)
%C%_descriptor_exchange_test_SOURCES = %D%/descriptor_exchange_test.cc

check_PROGRAMS += %D%/settings_test
TESTS += %D%/settings_test
%C%_settings_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_settings_test_LDADD = $(UNIT_TEST_LIBS)
%C%_settings_test_SOURCES = %D%/settings_test.cc

check_PROGRAMS += %D%/host_memory_test
TESTS += %D%/host_memory_test
%C%_host_memory_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_host_memory_test_LDADD = $(UNIT_TEST_LIBS)
%C%_host_memory_test_SOURCES = %D%/host_memory_test.cc

check_PROGRAMS += %D%/local_group_test
TESTS += %D%/local_group_test
%C%_local_group_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_local_group_test_LDADD = $(UNIT_TEST_LIBS)
%C%_local_group_test_SOURCES = %D%/local_group_test.cc

check_PROGRAMS += %D%/world_group_test
TESTS += %D%/world_group_test
TSAN_TESTS += %D%/world_group_test
%C%_world_group_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_world_group_test_LDADD = $(UNIT_TEST_LIBS)
%C%_world_group_test_SOURCES = %D%/world_group_test.cc

check_PROGRAMS += %D%/local_carrier_test
TESTS += %D%/local_carrier_test
TSAN_TESTS += %D%/local_carrier_test
%C%_local_carrier_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_local_carrier_test_LDADD = $(UNIT_TEST_LIBS)
%C%_local_carrier_test_SOURCES = %D%/local_carrier_test.cc %D%/carrier_cases.h %D%/late_memory.h
