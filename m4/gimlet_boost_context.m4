dnl SPDX-License-Identifier: BSD-3-Clause
dnl GIMLET_WITH_BOOST_CONTEXT: the fibers that run kernels on a CPU.
AC_DEFUN([GIMLET_WITH_BOOST_CONTEXT], [
  AC_CHECK_HEADER([boost/context/detail/fcontext.hpp], [],
    [AC_MSG_ERROR([Boost.Context is required (Debian: libboost-context-dev)])])
  AC_MSG_CHECKING([for libboost_context])
  gimlet_save_LIBS=$LIBS
  LIBS="-lboost_context $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <boost/context/detail/fcontext.hpp>
void entry(boost::context::detail::transfer_t) {}]],
    [[char stack[16384]; return boost::context::detail::make_fcontext(stack + 16384, 16384, entry) == nullptr;]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([libboost_context does not link (Debian: libboost-context-dev)])])
  LIBS=$gimlet_save_LIBS
  AC_SUBST([BOOST_CONTEXT_LIBS], [-lboost_context])
  GIMLET_REPORT([Boost.Context], [yes])
])
