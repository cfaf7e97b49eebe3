dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WITH_CLI11: arguments of the tools.
AC_DEFUN([GIMLET_WITH_CLI11], [
  AC_CHECK_HEADER([CLI/CLI.hpp], [],
    [AC_MSG_ERROR([CLI11 is required for the tools (Debian: libcli11-dev)])])
  GIMLET_REPORT([CLI11], [yes])
])
