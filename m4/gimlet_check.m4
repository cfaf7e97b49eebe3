dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WITH_CHECK: unit tests; without it they are left out and the summary says so.
AC_DEFUN([GIMLET_WITH_CHECK], [
  PKG_CHECK_MODULES([CHECK], [check >= 0.13], [gimlet_have_check=yes], [gimlet_have_check=no])
  AM_CONDITIONAL([HAVE_CHECK], [test "x$gimlet_have_check" = xyes])
  AS_IF([test "x$gimlet_have_check" = xyes],
    [GIMLET_REPORT([unit tests (Check)], [`$PKG_CONFIG --modversion check`])],
    [GIMLET_REPORT([unit tests (Check)], [left out: pkg-config finds no check >= 0.13])])
])
