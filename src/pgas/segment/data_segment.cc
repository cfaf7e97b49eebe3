// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/segment/data_segment.h"

#include <link.h>

namespace gimlet::pgas {
namespace {

/// dl_iterate_phdr reports the executable first.
int take_executable(dl_phdr_info* info, std::size_t, void* result) {
  auto& segment = *static_cast<LocalSegment*>(result);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader's interface gives addresses as integers
    auto* start = reinterpret_cast<std::byte*>(info->dlpi_addr + header.p_vaddr);
    if (segment.size == 0) segment.base = start;
    segment.size = static_cast<std::size_t>(start + header.p_memsz - segment.base);
  }
  return 1;
}

}  // namespace

LocalSegment find_data_segment() {
  LocalSegment segment{nullptr, 0};
  ::dl_iterate_phdr(take_executable, &segment);
  return segment;
}

}  // namespace gimlet::pgas
