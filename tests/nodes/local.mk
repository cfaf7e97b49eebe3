# SPDX-License-Identifier: BSD-3-Clause
# Jobs over more than one node, as far as one machine can pretend to be several.
NODE_TESTS = %D%/several_nodes
if !SANITIZE
TESTS += $(NODE_TESTS)
endif
EXTRA_DIST += $(NODE_TESTS)
