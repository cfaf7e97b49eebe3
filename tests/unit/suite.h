// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_UNIT_SUITE_H
#define GIMLET_TESTS_UNIT_SUITE_H

#include <check.h>

#include <cstdlib>
#include <initializer_list>

namespace gimlet::tests {

/// Runs the tests, each in a process of its own, and gives the exit status of main.
inline int run_suite(const char* name, std::initializer_list<const TTest*> tests,
                     double seconds_each = 30) {
  Suite* suite = suite_create(name);
  TCase* group = tcase_create(name);
  tcase_set_timeout(group, seconds_each);
  for (const TTest* test : tests) tcase_add_test(group, test);
  suite_add_tcase(suite, group);
  SRunner* runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/// Runs a suite over both ways in which UCX chooses its protocols: `newer` is that of later
/// releases. Gives the exit status of main.
inline int run_with_both_protocols(Suite* (*make)(bool newer)) {
  int failed = 0;
  for (const bool newer : {false, true}) {
    ::setenv("UCX_PROTO_ENABLE", newer ? "y" : "n", 1);
    SRunner* runner = srunner_create(make(newer));
    srunner_run_all(runner, CK_NORMAL);
    failed += srunner_ntests_failed(runner);
    srunner_free(runner);
  }
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace gimlet::tests

#endif
