dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WITH_MPI: --with-mpi=DIR|no|auto. Tests and an example only; the library never links MPI.
AC_DEFUN([GIMLET_WITH_MPI], [
  AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi=DIR|no],
    [MPI for tests and examples (default: mpicc and mpirun in PATH)])], [], [with_mpi=auto])
  MPICC=
  MPIRUN=
  AS_CASE([$with_mpi],
    [no], [],
    [auto|yes], [AC_PATH_PROG([MPICC], [mpicc])
                 AC_PATH_PROG([MPIRUN], [mpirun])],
    [AC_PATH_PROG([MPICC], [mpicc], [], [$with_mpi/bin])
     AC_PATH_PROG([MPIRUN], [mpirun], [], [$with_mpi/bin])])
  AS_IF([test "x$with_mpi" != xauto && test "x$with_mpi" != xno && test "x$MPICC" = x],
    [AC_MSG_ERROR([--with-mpi=$with_mpi was asked for, but there is no mpicc])])
  # The compiler stays that of this build, so that its options fit; MPI adds what Open MPI says.
  MPI_CFLAGS=
  MPI_LIBS=
  have_mpi_flags=no
  AS_IF([test "x$MPICC" != x], [
    AC_MSG_CHECKING([for the flags of $MPICC])
    AS_IF([MPI_CFLAGS=`$MPICC -showme:compile 2>/dev/null` &&
           MPI_LIBS=`$MPICC -showme:link 2>/dev/null`], [have_mpi_flags=yes])
    AC_MSG_RESULT([$have_mpi_flags])])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
  AM_CONDITIONAL([HAVE_MPI_FLAGS], [test $have_mpi_flags = yes])
  AC_SUBST([MPICC])
  AC_SUBST([MPIRUN])
  AM_CONDITIONAL([HAVE_MPI], [test "x$MPICC" != x])
  AM_CONDITIONAL([HAVE_MPIRUN], [test "x$MPIRUN" != x])
  AS_IF([test "x$MPIRUN" != x],
    [GIMLET_REPORT([MPI (tests, an example)], [$MPIRUN])],
    [GIMLET_REPORT([MPI (tests, an example)], [no: the tests under mpirun are skipped])])
])
