// SPDX-License-Identifier: BSD-3-Clause
#include "gin/path/proxy/proxy_path.h"

namespace gimlet::gin {

Status ProxyPath::Segments::offer(std::byte* base, std::size_t bytes,
                                  const device::MemoryKind& kind) {
  GIMLET_TRY(kind.is_open_to_transports() ? carrier_.add_segment(base, bytes, own_)
                                          : carrier_.add_staged_segment(base, bytes, kind, own_));
  is_offered_ = true;
  return {};
}

Status ProxyPath::open() {
  Status why_not;
  carrier_ = group_.carrier(why_not);
  return why_not;
}

bool ProxyPath::reaches(int, std::string* why_not) const {
  if (carrier_ == nullptr && why_not != nullptr) *why_not = "no transport carries its requests";
  return carrier_ != nullptr;
}

Status ProxyPath::connect(std::span<const int> ranks) {
  if (ranks.empty() || carrier_ != nullptr) return {};
  return fail(Code::kUnreachable, "no transport carries requests to rank {}", ranks.front());
}

/// One exchange carries the numbers and tells a rank that failed.
Status ProxyPath::offer(std::byte* base, std::size_t bytes, const device::MemoryKind& kind,
                        std::unique_ptr<Segments>& out) {
  struct Offer {
    std::uint32_t good;
    std::uint32_t number;
  };
  auto segments = std::make_unique<Segments>(*carrier_);
  Status mine = bytes == 0 ? Status() : segments->offer(base, bytes, kind);
  const Offer own = {mine.ok() ? 1u : 0u, segments->own()};
  std::vector<Offer> all(static_cast<std::size_t>(group_.size()));
  Status gathered =
      group_.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  if (!mine.ok()) return mine;
  GIMLET_TRY(std::move(gathered));
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].good == 0) return fail(Code::kRemote, "rank {} could not offer its memory", r);
    segments->by_rank.push_back(static_cast<pgas::SegmentNumber>(all[r].number));
  }
  out = std::move(segments);
  return {};
}

Status ProxyPath::register_memory(const device::Memory* mine, std::unique_ptr<Registration>& out) {
  std::unique_ptr<Segments> segments;
  GIMLET_TRY(offer(mine == nullptr ? nullptr : mine->base(), mine == nullptr ? 0 : mine->size(),
                   mine == nullptr ? device::host_memory() : mine->kind(), segments));
  out = std::move(segments);
  return {};
}

}  // namespace gimlet::gin
