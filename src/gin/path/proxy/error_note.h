// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_PATH_PROXY_ERROR_NOTE_H
#define GIMLET_GIN_PATH_PROXY_ERROR_NOTE_H

#include <cstdint>

#include "pgas/transport/carrier.h"

namespace gimlet::gin {

/// What a failed rank tells its peers.
struct ErrorNote {
  std::int32_t code;
  std::int32_t rank;
  std::int32_t peer;
  std::uint32_t operation;
  std::uint64_t offset;
};
static_assert(sizeof(ErrorNote) <= pgas::Carrier::kNoteBytes);

}  // namespace gimlet::gin

#endif
