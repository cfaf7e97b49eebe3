# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += %D%/gin_core_test
TESTS += %D%/gin_core_test
TSAN_TESTS += %D%/gin_core_test
%C%_gin_core_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_gin_core_test_LDADD = $(UNIT_TEST_LIBS)
%C%_gin_core_test_SOURCES = %D%/gin_core_test.cc
