dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WRAPPERS: the compilers that oshcc and oshc++ call: those of this build, without a cache
dnl in front of them and without the language standard, which the user chooses.
AC_DEFUN([GIMLET_STRIP_COMPILER], [
  $1=
  for gimlet_word in $2; do
    AS_CASE([$gimlet_word],
      [ccache|*/ccache|distcc|*/distcc|sccache|*/sccache|-std=*], [],
      [AS_VAR_APPEND([$1], ["${$1:+ }$gimlet_word"])])
  done
  AC_SUBST([$1])
])
AC_DEFUN([GIMLET_WRAPPERS], [
  GIMLET_STRIP_COMPILER([WRAPPER_CC], [$CC])
  GIMLET_STRIP_COMPILER([WRAPPER_CXX], [$CXX])
  GIMLET_REPORT([oshcc, oshc++ call], [$WRAPPER_CC, $WRAPPER_CXX])
])
