// SPDX-License-Identifier: BSD-3-Clause
#include "gin/path/direct/direct_path.h"

namespace gimlet::gin {

bool DirectPath::reaches(int rank, std::string* why_not) const {
  const auto group_of = [this](int r) { return static_cast<std::uint64_t>(r) / span_; };
  if (span_ != 0 && group_of(rank) != group_of(group_.rank())) {
    if (why_not != nullptr) *why_not = fmt::format("GIN_DIRECT_SPAN is {}", span_);
    return false;
  }
  return group_.is_mappable(rank, why_not);
}

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
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (!reaches(rank, nullptr)) mapping->peers.base[static_cast<std::size_t>(rank)] = nullptr;
  }
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
