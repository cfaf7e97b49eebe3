# SPDX-License-Identifier: BSD-3-Clause
TESTS += %D%/launches
EXTRA_DIST += %D%/launches
