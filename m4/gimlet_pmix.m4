dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WITH_PMIX: the bootstrap of launched jobs, client side in the library, server side in
dnl oshrun.
AC_DEFUN([GIMLET_WITH_PMIX], [
  PKG_CHECK_MODULES([PMIX], [pmix >= 4.1], [],
    [AC_MSG_ERROR([PMIx 4.1 or newer is required (Debian: libpmix-dev): $PMIX_PKG_ERRORS])])
  # Its headers are not free of warnings, so they are a system's.
  PMIX_CFLAGS=`AS_ECHO(["$PMIX_CFLAGS"]) | $SED 's/-I/-isystem /g'`
  GIMLET_REPORT([PMIx], [`$PKG_CONFIG --modversion pmix`])
])
