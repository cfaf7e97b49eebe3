# SPDX-License-Identifier: BSD-3-Clause
lib_LTLIBRARIES += libgimlet.la
libgimlet_la_SOURCES = %D%/version.cc
libgimlet_la_LIBADD = libgimlet_gin.la libgimlet_pgas.la libgimlet_device.la \
	$(PMIX_LIBS) $(UCX_LIBS) $(HWLOC_LIBS) $(FMT_LIBS) $(BOOST_CONTEXT_LIBS) -lpthread -ldl
libgimlet_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(GIMLET_VERSION_INFO) -no-undefined \
	-Wl,--version-script=$(srcdir)/%D%/gimlet.map -Wl,-z,now
EXTRA_libgimlet_la_DEPENDENCIES = $(srcdir)/%D%/gimlet.map
EXTRA_DIST += %D%/gimlet.map
if !SANITIZE
# Nothing undefined gets into the library; a sanitizer's own symbols come from the program.
libgimlet_la_LDFLAGS += -Wl,-z,defs
endif
