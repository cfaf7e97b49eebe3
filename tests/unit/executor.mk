# SPDX-License-Identifier: BSD-3-Clause
EXECUTOR_TESTS = %D%/executor_launch_test %D%/executor_test
check_PROGRAMS += $(EXECUTOR_TESTS)
TESTS += $(EXECUTOR_TESTS)
TSAN_TESTS += $(EXECUTOR_TESTS)
%C%_executor_launch_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_executor_launch_test_LDADD = $(UNIT_TEST_LIBS)
%C%_executor_launch_test_SOURCES = %D%/executor_launch_test.cc %D%/executor_world.h \
	tests/captured_stderr.h
%C%_executor_test_CPPFLAGS = $(UNIT_TEST_CPPFLAGS)
%C%_executor_test_LDADD = $(UNIT_TEST_LIBS)
%C%_executor_test_SOURCES = %D%/executor_test.cc %D%/executor_world.h
