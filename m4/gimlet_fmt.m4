dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WITH_FMT: messages. Used header-only, so that no fmt symbol is part of the library.
AC_DEFUN([GIMLET_WITH_FMT], [
  PKG_CHECK_MODULES([FMT], [fmt >= 8], [],
    [AC_MSG_ERROR([fmt 8 or newer is required (Debian: libfmt-dev): $FMT_PKG_ERRORS])])
  AC_SUBST([FMT_HEADER_ONLY_CPPFLAGS], ["-DFMT_HEADER_ONLY=1"])
  GIMLET_REPORT([fmt], [`$PKG_CONFIG --modversion fmt`])
])
