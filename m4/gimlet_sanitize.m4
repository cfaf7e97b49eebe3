dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_SANITIZE: --enable-sanitize=address,undefined | thread
AC_DEFUN([GIMLET_SANITIZE], [
  AC_ARG_ENABLE([sanitize], [AS_HELP_STRING([--enable-sanitize=LIST],
    [address,undefined or thread: build everything with these sanitizers])], [], [enable_sanitize=no])
  AS_CASE([$enable_sanitize],
    [no], [GIMLET_SANITIZE_FLAGS=],
    [address|undefined|address,undefined|thread],
      [GIMLET_SANITIZE_FLAGS="-fsanitize=$enable_sanitize -fno-omit-frame-pointer -fno-sanitize-recover=undefined"],
    [AC_MSG_ERROR([--enable-sanitize=$enable_sanitize: allowed are address, undefined, address,undefined and thread])])
  AC_SUBST([GIMLET_SANITIZE_FLAGS])
  AM_CONDITIONAL([SANITIZE], [test "x$enable_sanitize" != xno])
  AM_CONDITIONAL([SANITIZE_THREAD], [test "x$enable_sanitize" = xthread])
  GIMLET_REPORT([sanitizers], [$enable_sanitize])
])
