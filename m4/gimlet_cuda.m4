dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WITH_CUDA: --with-cuda=DIR|no|auto. Sets NVCC and the conditional HAVE_NVCC.
AC_DEFUN([GIMLET_WITH_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=DIR|no],
    [CUDA toolkit for kernels on GPUs (default: found in PATH or CUDA_HOME)])], [], [with_cuda=auto])
  NVCC=
  AS_CASE([$with_cuda],
    [no], [gimlet_cuda_why="--with-cuda=no"],
    [auto|yes], [
      AC_PATH_PROG([NVCC], [nvcc], [], [$PATH:${CUDA_HOME:-/usr/local/cuda}/bin:/usr/local/cuda/bin])
      gimlet_cuda_why="no nvcc in PATH or CUDA_HOME"],
    [AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin])
     gimlet_cuda_why="no nvcc in $with_cuda/bin"])
  AS_IF([test "x$NVCC" = x && test "x$with_cuda" != xauto && test "x$with_cuda" != xno],
    [AC_MSG_ERROR([--with-cuda=$with_cuda was asked for, but there is $gimlet_cuda_why])])
  AC_SUBST([NVCC])
  AM_CONDITIONAL([HAVE_NVCC], [test "x$NVCC" != x])
  AS_IF([test "x$NVCC" != x],
    [GIMLET_REPORT([CUDA], [$NVCC (device headers are compiled with it by make check)])],
    [GIMLET_REPORT([CUDA], [no: $gimlet_cuda_why])])
])
