dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WITH_FMT: messages. Linked: header-only use doubles the time of every compilation.
AC_DEFUN([GIMLET_WITH_FMT], [
  PKG_CHECK_MODULES([FMT], [fmt >= 8], [],
    [AC_MSG_ERROR([fmt 8 or newer is required (Debian: libfmt-dev): $FMT_PKG_ERRORS])])
  GIMLET_REPORT([fmt], [`$PKG_CONFIG --modversion fmt`])
])
