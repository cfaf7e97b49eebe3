dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WITH_HWLOC: topology, binding, allowed cores.
AC_DEFUN([GIMLET_WITH_HWLOC], [
  PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.1], [],
    [AC_MSG_ERROR([hwloc 2.1 or newer is required (Debian: libhwloc-dev): $HWLOC_PKG_ERRORS])])
  GIMLET_REPORT([hwloc], [`$PKG_CONFIG --modversion hwloc`])
])
