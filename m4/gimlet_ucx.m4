dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WITH_UCX: the transport to peers that loads and stores can't reach.
AC_DEFUN([GIMLET_WITH_UCX], [
  PKG_CHECK_MODULES([UCX], [ucx >= 1.12], [],
    [AC_MSG_ERROR([UCX 1.12 or newer is required (Debian: libucx-dev): $UCX_PKG_ERRORS])])
  GIMLET_REPORT([UCX], [`$PKG_CONFIG --modversion ucx`])
])
