dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WITH_RDMA_CORE: --with-rdma-core=yes|no|auto. Headers only: the libraries are opened at
dnl run time.
AC_DEFUN([GIMLET_WITH_RDMA_CORE], [
  AC_ARG_WITH([rdma-core], [AS_HELP_STRING([--with-rdma-core=yes|no],
    [verbs headers for the direct NIC path (default: when found)])], [], [with_rdma_core=auto])
  gimlet_have_rdma_core=no
  AS_IF([test "x$with_rdma_core" != xno],
    [AC_CHECK_HEADERS([infiniband/mlx5dv.h], [gimlet_have_rdma_core=yes])])
  AS_IF([test "x$with_rdma_core" = xyes && test "x$gimlet_have_rdma_core" = xno],
    [AC_MSG_ERROR([--with-rdma-core was asked for, but infiniband/mlx5dv.h is not found (Debian: libibverbs-dev)])])
  AS_IF([test "x$gimlet_have_rdma_core" = xyes],
    [GIMLET_REPORT([rdma-core], [headers found (no part of this release uses them)])],
    [GIMLET_REPORT([rdma-core], [no])])
])
