# SPDX-License-Identifier: BSD-3-Clause
# Hand-written pages; one-line pages for every function, made from the headers; checks of both.
EXTRA_DIST += %D%/list-functions %D%/make-pages %D%/pages.list %D%/extract-examples %D%/build-examples
dist_man1_MANS += %D%/man1/oshcc.1 %D%/man1/oshrun.1
dist_man3_MANS += \
	%D%/man3/gin_action.3 \
	%D%/man3/gin_atomic.3 \
	%D%/man3/gin_barrier.3 \
	%D%/man3/gin_comm.3 \
	%D%/man3/gin_context.3 \
	%D%/man3/gin_coop.3 \
	%D%/man3/gin_devcomm.3 \
	%D%/man3/gin_exec.3 \
	%D%/man3/gin_flush.3 \
	%D%/man3/gin_launch.3 \
	%D%/man3/gin_memory.3 \
	%D%/man3/gin_platform.3 \
	%D%/man3/gin_put.3 \
	%D%/man3/gin_result.3 \
	%D%/man3/gin_signal.3 \
	%D%/man3/gin_team.3 \
	%D%/man3/gin_window.3 \
	%D%/man3/pshmem.3 \
	%D%/man3/shmem_atomic.3 \
	%D%/man3/shmem_barrier_all.3 \
	%D%/man3/shmem_fence.3 \
	%D%/man3/shmem_g.3 \
	%D%/man3/shmem_get.3 \
	%D%/man3/shmem_get_nbi.3 \
	%D%/man3/shmem_global_exit.3 \
	%D%/man3/shmem_info_get_version.3 \
	%D%/man3/shmem_init.3 \
	%D%/man3/shmem_malloc.3 \
	%D%/man3/shmem_my_pe.3 \
	%D%/man3/shmem_p.3 \
	%D%/man3/shmem_pe_accessible.3 \
	%D%/man3/shmem_ptr.3 \
	%D%/man3/shmem_put.3 \
	%D%/man3/shmem_put_nbi.3 \
	%D%/man3/shmem_put_signal.3 \
	%D%/man3/shmem_signal.3 \
	%D%/man3/shmem_wait_until.3
dist_man7_MANS += %D%/man7/gimlet.7 %D%/man7/gin.7 %D%/man7/shmem.7

# The names come from the headers, so that no function can be without a page.
MAN_POINTERS = %D%/pointers/made
noinst_DATA += $(MAN_POINTERS)
$(MAN_POINTERS): %D%/list-functions %D%/make-pages %D%/pages.list $(dist_shmem_HEADERS) $(dist_shmem_gimlet_HEADERS) \
		$(dist_gin_HEADERS) $(dist_gin_impl_HEADERS)
	$(AM_V_GEN)rm -rf %D%/pointers && $(MKDIR_P) %D%/pointers && \
	CC='$(CC)' CXX='$(CXX)' $(srcdir)/%D%/list-functions $(srcdir)/include > %D%/pointers/names && \
	$(srcdir)/%D%/make-pages $(srcdir)/%D%/pages.list %D%/pointers < %D%/pointers/names && \
	echo '.so man1/oshcc.1' > %D%/pointers/oshc++.1 && touch $@

install-data-local: $(MAN_POINTERS)
	$(MKDIR_P) '$(DESTDIR)$(man1dir)' '$(DESTDIR)$(man3dir)'
	$(INSTALL_DATA) %D%/pointers/*.1 '$(DESTDIR)$(man1dir)'
	$(INSTALL_DATA) %D%/pointers/*.3 '$(DESTDIR)$(man3dir)'

uninstall-local:
	cd %D%/pointers && for page in *.1; do rm -f '$(DESTDIR)$(man1dir)'/"$$page"; done
	cd %D%/pointers && for page in *.3; do rm -f '$(DESTDIR)$(man3dir)'/"$$page"; done

# The examples are built by make, in parallel, and run by a test.
MAN_EXAMPLES = %D%/examples/built
check_DATA += $(MAN_EXAMPLES)
$(MAN_EXAMPLES): $(dist_man3_MANS) $(dist_man7_MANS) README.md %D%/extract-examples %D%/build-examples libgimlet.la
	$(AM_V_GEN)CC='$(CC)' CXX='$(CXX)' SANITIZE='$(GIMLET_SANITIZE_FLAGS)' \
	$(srcdir)/%D%/build-examples $(srcdir) %D%/examples .libs/libgimlet.so

MAN_CHECKS = tests/checks/man_pages tests/checks/man_examples
TESTS += $(MAN_CHECKS)
EXTRA_DIST += $(MAN_CHECKS)

clean-local:
	rm -rf %D%/pointers %D%/examples
