# SPDX-License-Identifier: BSD-3-Clause
# Unit tests: Check, one binary a module, no launcher; they link the parts of the library, not its
# exports.
UNIT_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
UNIT_TEST_LIBS = libgimlet_gin.la libgimlet_pgas.la libgimlet_device.la $(CHECK_LIBS) \
	$(PMIX_LIBS) $(UCX_LIBS) $(HWLOC_LIBS) $(FMT_LIBS) $(BOOST_CONTEXT_LIBS) -lpthread -ldl

# Every test runs through run-launched, which says there how a test is launched and how it says
# otherwise.
LOG_COMPILER = $(srcdir)/%D%/run-launched
AM_TESTS_ENVIRONMENT = OSHRUN='$(abs_builddir)/tools/oshrun/oshrun'; export OSHRUN; \
	MPIRUN='$(MPIRUN)'; export MPIRUN; MPICC='$(MPICC)'; export MPICC; \
	CC='$(WRAPPER_CC)'; export CC; CXX='$(WRAPPER_CXX)'; export CXX; NVCC='$(NVCC)'; export NVCC; \
	CHECK_CFLAGS='$(CHECK_CFLAGS)'; export CHECK_CFLAGS; CHECK_LIBS='$(CHECK_LIBS)'; export CHECK_LIBS;
if SANITIZE
# Tests that raise SIGSEGV on purpose want to see it arrive.
AM_TESTS_ENVIRONMENT += GIMLET_TEST_PATIENCE=4; export GIMLET_TEST_PATIENCE; \
	LSAN_OPTIONS='suppressions=$(abs_srcdir)/%D%/lsan.supp print_suppressions=0'; \
	export LSAN_OPTIONS; \
	ASAN_OPTIONS="handle_segv=0$${ASAN_OPTIONS:+:$$ASAN_OPTIONS}"; export ASAN_OPTIONS;
endif
if SANITIZE_THREAD
# UCX's hooks of the C library run in threads that the sanitizer has already forgotten.
AM_TESTS_ENVIRONMENT += UCX_MEM_MMAP_HOOK_MODE=none; export UCX_MEM_MMAP_HOOK_MODE;
endif
EXTRA_DIST += %D%/launchers.bash %D%/lsan.supp %D%/run-launched

# Checks of the sources themselves, which sanitizers have nothing to add to.
SOURCE_CHECKS = %D%/checks/exports %D%/checks/format %D%/checks/include_direction \
	%D%/checks/nvcc_headers %D%/checks/public_headers \
	%D%/checks/run_launched %D%/checks/scripts %D%/checks/spdx %D%/checks/words
if !SANITIZE
TESTS += $(SOURCE_CHECKS)
endif
EXTRA_DIST += $(SOURCE_CHECKS) %D%/checks/sources %D%/checks/release

# make installcheck.
EXTRA_DIST += %D%/install/check-install %D%/install/fresh-root %D%/install/CMakeLists.txt \
	%D%/install/ring.c %D%/install/kernel.cc

# Measurements: never in make check.
# make tests/perf/proxy_perf
EXTRA_PROGRAMS = %D%/perf/proxy_perf
%C%_perf_proxy_perf_SOURCES = %D%/perf/proxy_perf.cc
%C%_perf_proxy_perf_LDADD = libgimlet_gin.la libgimlet_pgas.la libgimlet_device.la $(PMIX_LIBS) \
	$(UCX_LIBS) $(HWLOC_LIBS) $(FMT_LIBS) $(BOOST_CONTEXT_LIBS) -lpthread -ldl
EXTRA_DIST += %D%/perf/executor_perf.cc %D%/perf/compare %D%/perf/host_latency.c \
	%D%/perf/startup.c

if HAVE_CHECK
include %D%/unit/executor.mk
include %D%/unit/ucx.mk
include %D%/unit/pgas.mk
include %D%/unit/gin.mk
endif
include %D%/conformance/local.mk
include %D%/device/gin.mk
include %D%/fault/local.mk
include %D%/nodes/local.mk
include %D%/soak/local.mk
