# SPDX-License-Identifier: BSD-3-Clause

# Compiler wrappers, and the files that pkg-config and CMake read. Paths below the prefix are
# written relative to it, so that an installed tree can be moved.
bin_SCRIPTS += %D%/oshcc %D%/oshc++
pkgconfigdir = $(libdir)/pkgconfig
cmakedir = $(libdir)/cmake/Gimlet
nodist_pkgconfig_DATA = %D%/gimlet.pc
nodist_cmake_DATA = %D%/GimletConfig.cmake %D%/GimletConfigVersion.cmake
CLEANFILES += $(nodist_pkgconfig_DATA) $(nodist_cmake_DATA) %D%/oshcc %D%/oshc++
EXTRA_DIST += %D%/oshcc.in %D%/gimlet.pc.in %D%/GimletConfig.cmake.in %D%/GimletConfigVersion.cmake.in

SUBSTITUTE = $(SED) -e 's|@prefix[@]|$(prefix)|' -e 's|@bindir[@]|$(bindir)|' -e 's|@libdir[@]|$(libdir)|' \
	-e 's|@includedir[@]|$(includedir)|' -e 's|@VERSION[@]|$(PACKAGE_VERSION)|' \
	-e 's|@SANITIZE[@]|$(GIMLET_SANITIZE_FLAGS)|'
SUBSTITUTE_C = -e 's|@WRAPPER[@]|oshcc|' -e 's|@LANGUAGE[@]|C|' -e 's|@OVERRIDE[@]|OSHCC_CC|' \
	-e 's|@COMPILER[@]|$(WRAPPER_CC)|'
SUBSTITUTE_CXX = -e 's|@WRAPPER[@]|oshc++|' -e 's|@LANGUAGE[@]|C++|' -e 's|@OVERRIDE[@]|OSHCXX_CXX|' \
	-e 's|@COMPILER[@]|$(WRAPPER_CXX)|'
# below DIR, ROOT: DIR as seen from the prefix, which ROOT stands for.
BELOW = below () { case $$1 in '$(prefix)'/*) echo "$$2$${1\#'$(prefix)'}" ;; *) echo "$$1" ;; esac; }
# climb DIR, ROOT: the prefix as seen from DIR, which ROOT stands for; absolute if DIR is elsewhere.
CLIMB = climb () { case $$1 in '$(prefix)'/*) \
	echo "$$2/`echo "$${1\#'$(prefix)'/}" | $(SED) 's|[^/][^/]*|..|g'`" ;; *) echo '$(prefix)' ;; esac; }

%D%/oshcc: %D%/oshcc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(SUBSTITUTE) $(SUBSTITUTE_C) $(srcdir)/%D%/oshcc.in > $@.new && \
	chmod +x $@.new && mv $@.new $@
%D%/oshc++: %D%/oshcc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(SUBSTITUTE) $(SUBSTITUTE_CXX) $(srcdir)/%D%/oshcc.in > $@.new && \
	chmod +x $@.new && mv $@.new $@
%D%/gimlet.pc: %D%/gimlet.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D%; $(BELOW); $(CLIMB); \
	$(SUBSTITUTE) -e "s|@PC_PREFIX@|`climb $(pkgconfigdir) '$${pcfiledir}'`|" \
	  -e "s|@PC_INCLUDEDIR@|`below $(includedir) '$${prefix}'`|" -e "s|@PC_LIBDIR@|`below $(libdir) '$${prefix}'`|" \
	  $(srcdir)/%D%/gimlet.pc.in > $@
%D%/GimletConfig.cmake: %D%/GimletConfig.cmake.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D%; $(BELOW); $(CLIMB); \
	$(SUBSTITUTE) -e "s|@CMAKE_PREFIX@|`climb $(cmakedir) '$${CMAKE_CURRENT_LIST_DIR}'`|" \
	  -e "s|@CMAKE_INCLUDEDIR@|`below $(includedir) '$${GIMLET_PREFIX}'`|" \
	  -e "s|@CMAKE_LIBDIR@|`below $(libdir) '$${GIMLET_PREFIX}'`|" \
	  $(srcdir)/%D%/GimletConfig.cmake.in > $@
%D%/GimletConfigVersion.cmake: %D%/GimletConfigVersion.cmake.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D%; version='$(PACKAGE_VERSION)'; major=$${version%%.*}; rest=$${version#*.}; \
	$(SUBSTITUTE) -e "s|@VERSION_MAJOR@|$$major|" -e "s|@VERSION_MINOR@|$${rest%%.*}|" \
	  $(srcdir)/%D%/GimletConfigVersion.cmake.in > $@
