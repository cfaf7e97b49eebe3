# SPDX-License-Identifier: BSD-3-Clause
# Unit tests: Check, one binary a module, no launcher; they link the parts of the library, not its exports.
UNIT_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
UNIT_TEST_LIBS = libgimlet_gin.la libgimlet_pgas.la libgimlet_device.la $(CHECK_LIBS) \
	$(PMIX_LIBS) $(UCX_LIBS) $(HWLOC_LIBS) $(BOOST_CONTEXT_LIBS) -lpthread -ldl
