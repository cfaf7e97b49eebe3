# SPDX-License-Identifier: BSD-3-Clause
# Launched tests of oshrun itself.
LAUNCH_TESTS = %D%/abort %D%/bad_options %D%/binding %D%/death_of_a_pe \
	%D%/death_of_the_launcher %D%/debugger %D%/environment %D%/exit_codes %D%/handover \
	%D%/hybrid_mpi %D%/many_pes %D%/mpi %D%/programs %D%/signals %D%/streams %D%/terminal %D%/timeout
TESTS += $(LAUNCH_TESTS)
EXTRA_DIST += $(LAUNCH_TESTS) %D%/harness.bash %D%/mpi_client.c

check_PROGRAMS += %D%/pmix_client
%C%_pmix_client_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS)
%C%_pmix_client_LDADD = $(PMIX_LIBS)
%C%_pmix_client_SOURCES = %D%/pmix_client.c
