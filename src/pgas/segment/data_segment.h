// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_SEGMENT_DATA_SEGMENT_H
#define GIMLET_PGAS_SEGMENT_DATA_SEGMENT_H

#include "pgas/transport/transport.h"

namespace gimlet::pgas {

/// The executable's writable data (.data and .bss): symmetric by the standard. Base and size differ
/// between PEs only by address randomisation and by program; offsets from the base are what PEs
/// exchange. Size 0 when the executable has no writable segment.
LocalSegment find_data_segment();

}  // namespace gimlet::pgas

#endif
