# SPDX-License-Identifier: BSD-3-Clause
gin_unit_tests = %D%/gin_core_test %D%/proxies_test %D%/reordering_carrier_test
check_PROGRAMS += $(gin_unit_tests)
TESTS += $(gin_unit_tests)
TSAN_TESTS += $(gin_unit_tests)
%C%_gin_core_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_gin_core_test_LDADD = $(UNIT_TEST_LIBS)
%C%_gin_core_test_SOURCES = %D%/gin_core_test.cc
%C%_proxies_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_proxies_test_LDADD = $(UNIT_TEST_LIBS)
%C%_proxies_test_SOURCES = %D%/proxies_test.cc
%C%_reordering_carrier_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_reordering_carrier_test_LDADD = $(UNIT_TEST_LIBS)
%C%_reordering_carrier_test_SOURCES = %D%/reordering_carrier_test.cc

# The ring alone, which links nothing of the library, and its defects.
check_PROGRAMS += %D%/ring_test
TESTS += %D%/ring_test
TSAN_TESTS += %D%/ring_test
if SANITIZE_THREAD
# It compiles what it runs by itself, so once is enough.
TESTS += %D%/ring_mutants
TSAN_TESTS += %D%/ring_mutants
endif
EXTRA_DIST += %D%/ring_mutants
%C%_ring_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_ring_test_LDADD = $(CHECK_LIBS) -lpthread
%C%_ring_test_SOURCES = %D%/ring_test.cc
