// SPDX-License-Identifier: BSD-3-Clause
// OpenSHMEM 1.6, 9.11: point-to-point synchronisation.
#include "pgas/api/compare.h"

namespace {

using gimlet::pgas::Pe;

template <class T>
int test(const char* call, const T* address, int cmp, T wanted) {
  gimlet::pgas::require_compare(call, cmp);
  T value;
  __atomic_load(address, &value, __ATOMIC_ACQUIRE);
  if (gimlet::pgas::holds(cmp, value, wanted)) return 1;
  // A program may poll with test alone: serve the transport that brings the update.
  if (auto* transport = Pe::self().started_transport()) transport->progress();
  return 0;
}

}  // namespace

#define DEFINE_P2P(NAME, TYPE, ARG)                                                           \
  GIMLET_SHMEM(void, NAME##_wait_until, TYPE* ivar, int cmp, TYPE cmp_value) {                \
    (void)gimlet::pgas::wait_until<TYPE>("shmem_" #NAME "_wait_until", ivar, cmp, cmp_value); \
  }                                                                                           \
  GIMLET_SHMEM(int, NAME##_test, TYPE* ivar, int cmp, TYPE cmp_value) {                       \
    return test<TYPE>("shmem_" #NAME "_test", ivar, cmp, cmp_value);                          \
  }
SHMEM_I_AMO_STD(DEFINE_P2P, )
SHMEM_I_P2P_SHORT(DEFINE_P2P, )
