# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += SECURITY.md AUTHORS %D%/conformance.md %D%/launchers.md %D%/performance.md \
	%D%/how-it-works/direct-path.md %D%/how-it-works/errors-and-waits.md \
	%D%/how-it-works/executor.md %D%/how-it-works/proxy-path.md \
	%D%/how-it-works/start-up.md \
	%D%/how-it-works/symmetric-heap.md %D%/how-it-works/transports.md
