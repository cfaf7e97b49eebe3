# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/list-functions
dist_man1_MANS += %D%/man1/oshrun.1
