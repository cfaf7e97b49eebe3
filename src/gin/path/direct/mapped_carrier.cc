// SPDX-License-Identifier: BSD-3-Clause
#include "gin/path/direct/mapped_carrier.h"

namespace gimlet::gin {
namespace {

/// One rank's parts of the windows.
class WindowParts final : public pgas::TargetMemory {
 public:
  WindowParts(const MappedCarrier::Setup& setup, std::uint32_t slot) : setup_(setup), slot_(slot) {}

  std::byte* locate(pgas::SegmentNumber segment, std::uint64_t offset,
                    std::uint64_t bytes) const override {
    const std::uint64_t size = size_of(segment);
    if (size == 0 || offset > size || bytes > size - offset) return nullptr;
    return reinterpret_cast<std::byte*>(setup_.windows[segment].peers[slot_].base) + offset;
  }
  std::uint64_t size_of(pgas::SegmentNumber segment) const override {
    const bool there = segment < setup_.capacity && setup_.windows[segment].live == GIN_WINDOW_LIVE;
    return there ? setup_.windows[segment].peers[slot_].size : 0;
  }

 private:
  const MappedCarrier::Setup& setup_;
  const std::uint32_t slot_;
};

}  // namespace

Status MappedCarrier::add_segment(std::byte* base, std::size_t size, pgas::SegmentNumber& number) {
  return setup_.others == nullptr ? Status() : setup_.others->add_segment(base, size, number);
}

Status MappedCarrier::add_staged_segment(std::byte* base, std::size_t size,
                                         const device::MemoryKind& kind,
                                         pgas::SegmentNumber& number) {
  return setup_.others == nullptr ? Status()
                                  : setup_.others->add_staged_segment(base, size, kind, number);
}

void MappedCarrier::remove_segment(pgas::SegmentNumber number) {
  if (setup_.others != nullptr) setup_.others->remove_segment(number);
}

Status MappedCarrier::add_listener(Listener listener, pgas::ListenerNumber& number) {
  listener_ = listener;
  return setup_.others == nullptr ? Status()
                                  : setup_.others->add_listener(std::move(listener), number);
}

void MappedCarrier::remove_listener(pgas::ListenerNumber number) {
  if (setup_.others != nullptr) setup_.others->remove_listener(number);
}

bool MappedCarrier::post(pgas::CarriedRequest& request) {
  const std::uint32_t slot = setup_.slots[static_cast<std::size_t>(request.rank)];
  if (slot >= GIN_PROXY_SLOT) return setup_.others->post(request);
  pgas::Refusal refusal;
  const bool moves = request.kind != pgas::CarriedRequest::Kind::kDrain;
  if (moves && !pgas::carry_out(request, WindowParts(setup_, slot), refusal)) {
    request.is_refused = true;
    listener_.refused(refusal);
  }
  request.completed(request, {});
  return true;
}

/// Without another carrier all error words are set from here, and notes tell nothing more.
bool MappedCarrier::post_note(int rank, pgas::ListenerNumber listener,
                              std::span<const std::byte> note) {
  return setup_.others == nullptr || setup_.others->post_note(rank, listener, note);
}

}  // namespace gimlet::gin
