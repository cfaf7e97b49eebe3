// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "device/memory_kind.h"

namespace gimlet::device {
namespace {

constexpr std::size_t kSmallestAlignment = 4096;

std::size_t round_to_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

class HostMemory final : public Memory {
 public:
  HostMemory(std::byte* base, std::size_t size, UniqueFd fd)
      : Memory(host_memory(), base, size), fd_(std::move(fd)) {}
  ~HostMemory() override { ::munmap(base(), size()); }

  Status export_fd(UniqueFd& out) const override {
    out.reset(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
    if (!out.valid()) return fail_errno(errno, "duplicating a memory descriptor failed");
    return {};
  }

 private:
  UniqueFd fd_;
};

/// The largest alignment that an offset into memory of this size can ask for: addresses of the base
/// are multiples of it, so an aligned offset is an aligned address in the process that allocated.
std::size_t base_alignment(std::size_t size) {
  return std::clamp(std::bit_floor(size), kSmallestAlignment, MemoryKind::kLargestAlignment);
}

Status map_shared(UniqueFd fd, std::size_t size, std::unique_ptr<Memory>& out) {
  const std::size_t alignment = base_alignment(size);
  void* reserved = ::mmap(nullptr, size + alignment, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    return fail_errno(errno, "reserving {} bytes of addresses failed", size + alignment);
  auto* start = static_cast<std::byte*>(reserved);
  const std::size_t head =
      (alignment - reinterpret_cast<std::uintptr_t>(start) % alignment) % alignment;
  void* base = ::mmap(start + head, size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd.get(), 0);
  if (base == MAP_FAILED) {
    const int error = errno;
    ::munmap(reserved, size + alignment);
    return fail_errno(error, "mapping {} bytes of shared memory failed", size);
  }
  if (head != 0) ::munmap(start, head);
  if (head != alignment) ::munmap(start + head + size, alignment - head);
  out = std::make_unique<HostMemory>(static_cast<std::byte*>(base), size, std::move(fd));
  return {};
}

/// A memfd obeys `ulimit -f`; without this check the process would die by SIGXFSZ.
Status check_file_limit(std::size_t size, const char* label) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  if (limit.rlim_cur >= size) return {};
  return fail(Code::kNoMemory,
              "{} needs {} bytes, but the file size limit (ulimit -f) allows {} bytes", label, size,
              limit.rlim_cur);
}

class HostMemoryKind final : public MemoryKind {
 public:
  const char* name() const override { return "host"; }
  bool is_host_accessible() const override { return true; }

  Status allocate(std::size_t bytes, const char* label,
                  std::unique_ptr<Memory>& out) const override {
    const std::size_t size = round_to_pages(bytes == 0 ? 1 : bytes);
    GIMLET_TRY(check_file_limit(size, label));
    UniqueFd fd(::memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd.valid()) return fail_errno(errno, "memfd_create for {} failed", label);
    if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
      return fail_errno(errno, "{} of {} bytes can't be made", label, size);
    }
    // A peer that could shrink the file would turn our loads into SIGBUS.
    if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      return fail_errno(errno, "sealing {} failed", label);
    }
    return map_shared(std::move(fd), size, out);
  }

  Status import(UniqueFd fd, std::size_t bytes, std::unique_ptr<Memory>& out) const override {
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0)
      return fail_errno(errno, "a peer's memory descriptor can't be read");
    const std::size_t size = round_to_pages(bytes == 0 ? 1 : bytes);
    if (static_cast<std::size_t>(info.st_size) < size) {
      return fail(Code::kRemote, "a peer's memory has {} bytes, {} were announced", info.st_size,
                  size);
    }
    return map_shared(std::move(fd), size, out);
  }

  void copy(void* dest, const void* source, std::size_t bytes) const override {
    if (bytes != 0) std::memcpy(dest, source, bytes);
  }
};

}  // namespace

const MemoryKind& host_memory() {
  static const HostMemoryKind kind;
  return kind;
}

}  // namespace gimlet::device
