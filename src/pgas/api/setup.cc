// SPDX-License-Identifier: BSD-3-Clause
// OpenSHMEM 1.6, 9.1 and 9.2: setup, exit and query, thread levels.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "device/log.h"
#include "pgas/api/export.h"
#include "pgas/pe.h"

namespace {

using gimlet::pgas::Pe;

void init_or_end(const char* call) {
  const gimlet::Status status = Pe::self().init();
  if (status.ok()) return;
  gimlet::log::error("{}: {}", call, status.message());
  // Other PEs may be waiting for this one: the launcher ends them when a PE leaves with a failure.
  ::_exit(EXIT_FAILURE);
}

}  // namespace

GIMLET_SHMEM(void, init, void) {
  init_or_end("shmem_init");
}

GIMLET_SHMEM(int, init_thread, int requested, int* provided) {
  if (provided == nullptr || requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE) {
    gimlet::log::error(
        "shmem_init_thread: level {} with provided {}; allowed are SHMEM_THREAD_SINGLE ({}) to "
        "SHMEM_THREAD_MULTIPLE ({}) and a place for the answer",
        requested, static_cast<const void*>(provided), SHMEM_THREAD_SINGLE, SHMEM_THREAD_MULTIPLE);
    return 1;
  }
  init_or_end("shmem_init_thread");
  *provided = SHMEM_THREAD_MULTIPLE;
  return 0;
}

GIMLET_SHMEM(void, query_thread, int* provided) {
  *provided = SHMEM_THREAD_MULTIPLE;
}

GIMLET_SHMEM(void, query_initialized, int* initialized) {
  *initialized = Pe::self().is_initialized() ? 1 : 0;
}

GIMLET_SHMEM(void, finalize, void) {
  Pe::self().finalize();
}

extern "C" void shmem_global_exit(int status)
    __attribute__((weak, noreturn, alias("pshmem_global_exit")));
extern "C" void pshmem_global_exit(int status) {
  Pe::self().global_exit(status);
}

GIMLET_SHMEM(int, my_pe, void) {
  return Pe::self().rank();
}

GIMLET_SHMEM(int, n_pes, void) {
  return Pe::self().size();
}

GIMLET_SHMEM(int, pe_accessible, int pe) {
  return Pe::self().is_initialized() && Pe::self().exists(pe) ? 1 : 0;
}

GIMLET_SHMEM(int, addr_accessible, const void* addr, int pe) {
  const Pe& self = Pe::self();
  return self.is_initialized() && self.exists(pe) && self.is_symmetric(addr) ? 1 : 0;
}

GIMLET_SHMEM(void*, ptr, const void* dest, int pe) {
  const Pe& self = Pe::self();
  if (!self.is_initialized() || !self.exists(pe) || !self.is_symmetric(dest)) return nullptr;
  if (pe == self.rank()) return const_cast<void*>(dest);
  return self.direct(const_cast<void*>(dest), 1, pe);
}

GIMLET_SHMEM(void, info_get_version, int* major, int* minor) {
  *major = SHMEM_MAJOR_VERSION;
  *minor = SHMEM_MINOR_VERSION;
}

GIMLET_SHMEM(void, info_get_name, char* name) {
  static_assert(sizeof SHMEM_VENDOR_STRING <= SHMEM_MAX_NAME_LEN);
  std::memcpy(name, SHMEM_VENDOR_STRING, sizeof SHMEM_VENDOR_STRING);
}
