# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libgimlet_gin.la
libgimlet_gin_la_CPPFLAGS = $(AM_CPPFLAGS)
libgimlet_gin_la_SOURCES =
