# SPDX-License-Identifier: BSD-3-Clause
gin_test_sources = tests/captured_stderr.h %D%/gin_kernels.h %D%/gin_ranks.h %D%/gin_suite.h
gin_tests = %D%/gin_errors_test %D%/gin_launched_test %D%/gin_reorder_test \
	%D%/gin_reports_test %D%/gin_threads_test
check_PROGRAMS += $(gin_tests)
TESTS += $(gin_tests)
TSAN_TESTS += %D%/gin_errors_test %D%/gin_threads_test
if SANITIZE_THREAD
TESTS += %D%/mutants
TSAN_TESTS += %D%/mutants
endif
TESTS += %D%/wrong_kernels
EXTRA_DIST += %D%/mutants %D%/wrong_kernels
# Reads the counters of a proxy, which the library doesn't export.
check_PROGRAMS += %D%/gin_engine_test
TESTS += %D%/gin_engine_test
%C%_gin_engine_test_SOURCES = %D%/gin_engine_test.cc $(gin_test_sources)
%C%_gin_engine_test_LDADD = libgimlet_gin.la libgimlet_pgas.la libgimlet_device.la $(PMIX_LIBS) \
	$(UCX_LIBS) $(HWLOC_LIBS) $(FMT_LIBS) $(BOOST_CONTEXT_LIBS) -lpthread -ldl
%C%_gin_errors_test_SOURCES = %D%/gin_errors_test.cc $(gin_test_sources)
%C%_gin_errors_test_LDADD = libgimlet.la
%C%_gin_launched_test_SOURCES = %D%/gin_launched_test.cc $(gin_test_sources)
%C%_gin_launched_test_LDADD = libgimlet.la
%C%_gin_reorder_test_SOURCES = %D%/gin_reorder_test.cc %D%/gin_wrong_kernels.h tests/unit/child.h $(gin_test_sources)
%C%_gin_reorder_test_LDADD = libgimlet.la
%C%_gin_reports_test_SOURCES = %D%/gin_reports_test.cc $(gin_test_sources)
%C%_gin_reports_test_LDADD = libgimlet.la
%C%_gin_threads_test_SOURCES = %D%/gin_threads_test.cc $(gin_test_sources)
%C%_gin_threads_test_LDADD = libgimlet.la
