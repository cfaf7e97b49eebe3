# SPDX-License-Identifier: BSD-3-Clause
# Every example is built, installed, and run by make check through tests/run-launched.
examplesdir = $(pkglibdir)/examples
examples_PROGRAMS =
TESTS += $(examples_PROGRAMS)
