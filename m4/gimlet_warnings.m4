dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WARNINGS: the warning set of every translation unit; errors only with --enable-werror.
AC_DEFUN([GIMLET_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat warnings as errors (developers, CI)])],
    [], [enable_werror=no])
  GIMLET_WARN="-Wall -Wextra -Wpedantic -Wshadow -Wundef"
  AS_IF([test "x$enable_werror" = xyes], [GIMLET_WARN="$GIMLET_WARN -Werror"])
  AC_SUBST([GIMLET_WARN_CFLAGS], ["$GIMLET_WARN"])
  AC_SUBST([GIMLET_WARN_CXXFLAGS], ["$GIMLET_WARN -Wconversion -Wnon-virtual-dtor"])
  GIMLET_REPORT([warnings are errors], [$enable_werror])
])
