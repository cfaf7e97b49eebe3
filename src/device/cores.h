// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CORES_H
#define GIMLET_DEVICE_CORES_H

namespace gimlet::device {

/// Cores that this process may run on (its affinity at the first call, which a later binding of a
/// thread does not change), at least 1.
int allowed_cores();

/// How many processes share those cores evenly (1 until told otherwise): sizes the worker pool of
/// the executor.
void set_local_pes(int pes);
int local_pes();

}  // namespace gimlet::device

#endif
