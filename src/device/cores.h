// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CORES_H
#define GIMLET_DEVICE_CORES_H

namespace gimlet::device {

/// Cores that this process may run on (its affinity at the first call, which a later binding of a
/// thread does not change), at least 1.
int allowed_cores();

}  // namespace gimlet::device

#endif
