// SPDX-License-Identifier: BSD-3-Clause
// The group of all PEs, here of one, that outlives shmem_finalize: kernels and proxy threads may
// still ask it who is dead.
#include <atomic>
#include <memory>
#include <thread>

#include "pgas/group.h"
#include "pgas/pe.h"

// After the headers above, whose name `fail` it takes.
#include "suite.h"
#undef fail

namespace {

using gimlet::pgas::Group;
using gimlet::pgas::Pe;

START_TEST(who_is_dead_can_be_asked_at_any_time) {
  ck_assert(Pe::self().init().ok());
  std::unique_ptr<Group> group;
  ck_assert(gimlet::pgas::make_world_group(group).ok());
  std::atomic<bool> over{false};
  std::thread asker([&] {
    while (!over) ck_assert_int_eq(group->dead_rank(), -1);
  });
  for (int round = 0; round < 300; ++round) {
    Pe::self().finalize();
    ck_assert(Pe::self().init().ok());
  }
  Pe::self().finalize();
  over = true;
  asker.join();
  ck_assert_int_eq(group->dead_rank(), -1);
}
END_TEST

}  // namespace

int main() {
  ::setenv("SHMEM_SYMMETRIC_SIZE", "1m", 1);
  ::unsetenv("PMIX_NAMESPACE");
  return gimlet::tests::run_suite("world group", {who_is_dead_can_be_asked_at_any_time});
}
