// SPDX-License-Identifier: BSD-3-Clause
#include "gin/path/direct/direct_path.h"

namespace gimlet::gin {

Status DirectPath::connect(std::span<const int> ranks) {
  for (const int rank : ranks) {
    std::string why;
    if (reaches(rank, &why)) continue;
    return fail(Code::kUnreachable, "the memory of rank {} can't be mapped: {}", rank, why);
  }
  return {};
}

Status DirectPath::map(const device::Memory* mine, std::unique_ptr<Mapping>& out) {
  auto mapping = std::make_unique<Mapping>();
  GIMLET_TRY(group_.map_peers(mine, mapping->peers));
  out = std::move(mapping);
  return {};
}

Status DirectPath::register_memory(const device::Memory* mine, std::unique_ptr<Registration>& out) {
  std::unique_ptr<Mapping> mapping;
  GIMLET_TRY(map(mine, mapping));
  out = std::move(mapping);
  return {};
}

}  // namespace gimlet::gin
