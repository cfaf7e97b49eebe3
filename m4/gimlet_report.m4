dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_REPORT(what, state): one line of the summary. GIMLET_SUMMARY prints them.
AC_DEFUN([GIMLET_REPORT], [
  gimlet_report_state="$2"
  gimlet_report="$gimlet_report
  `printf '%-22s' '$1:'` $gimlet_report_state"
])
AC_DEFUN([GIMLET_SUMMARY], [
  AS_ECHO(["
Gimlet $PACKAGE_VERSION will be built with:$gimlet_report
  install prefix:        $prefix
"])
])
