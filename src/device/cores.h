// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CORES_H
#define GIMLET_DEVICE_CORES_H

#include <sched.h>

namespace gimlet::device {

/// Cpus that this process may run on: its affinity when the library was loaded, which a later
/// binding of a thread does not change.
const cpu_set_t& allowed_cpus();
/// How many, at least 1.
int allowed_cores();

/// How many processes share those cores evenly (1 until told otherwise): sizes the worker pool of
/// the executor.
void set_local_pes(int pes);
int local_pes();

}  // namespace gimlet::device

#endif
