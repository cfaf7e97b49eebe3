// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/kernel_name.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/unique_fd.h"

namespace gimlet::device {
namespace {

/// A file mapped for reading.
class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
    struct stat status;
    if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || status.st_size <= 0) return;
    bytes_ = static_cast<std::size_t>(status.st_size);
    void* const mapped = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (mapped != MAP_FAILED) base_ = static_cast<const char*>(mapped);
  }
  ~MappedFile() {
    if (base_ != nullptr) ::munmap(const_cast<char*>(base_), bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// `count` objects at `offset`, or nullptr if the file has not so many.
  template <class T>
  const T* at(std::uint64_t offset, std::uint64_t count = 1) const {
    if (base_ == nullptr || offset > bytes_ || count > (bytes_ - offset) / sizeof(T))
      return nullptr;
    return reinterpret_cast<const T*>(base_ + offset);
  }

 private:
  const char* base_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The function at `value`, or the one around it.
enum class Where : std::uint8_t { kStart, kInside };

bool is_function_at(const ElfW(Sym) & symbol, std::uint64_t value, Where where) {
  if ((symbol.st_info & 0xf) != STT_FUNC) return false;
  if (where == Where::kStart) return symbol.st_value == value;
  return value >= symbol.st_value && value - symbol.st_value < symbol.st_size;
}

/// Kernels are seldom exported, so dladdr does not know them: the file's own symbol table does,
/// unless it was stripped.
std::string name_in_file(const char* path, std::uint64_t value, Where where) {
  const MappedFile file(path);
  const auto* const header = file.at<ElfW(Ehdr)>(0);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return {};
  const auto* const sections = file.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
  if (sections == nullptr) return {};
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const ElfW(Shdr)& table = sections[i];
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= header->e_shnum) continue;
    const std::uint64_t count = table.sh_size / sizeof(ElfW(Sym));
    const auto* const symbols = file.at<ElfW(Sym)>(table.sh_offset, count);
    const ElfW(Shdr)& strings = sections[table.sh_link];
    const auto* const text = file.at<char>(strings.sh_offset, strings.sh_size);
    if (symbols == nullptr || text == nullptr || strings.sh_size == 0 ||
        text[strings.sh_size - 1] != '\0') {
      continue;
    }
    for (std::uint64_t k = 0; k < count; ++k) {
      if (is_function_at(symbols[k], value, where) && symbols[k].st_name < strings.sh_size) {
        return text + symbols[k].st_name;
      }
    }
  }
  return {};
}

std::string readable(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 && demangled ? demangled.get() : symbol;
  constexpr const char* kAnonymous = "(anonymous namespace)::";
  for (std::size_t at = name.find(kAnonymous); at != std::string::npos; at = name.find(kAnonymous))
    name.erase(at, std::strlen(kAnonymous));
  // Templates come with their return type: "void scale<float>(float*)".
  const std::size_t end = name.find('(');
  const std::size_t space = name.substr(0, name.find_first_of("<(")).rfind(' ');
  const std::size_t begin = space == std::string::npos ? 0 : space + 1;
  return name.substr(begin, end == std::string::npos ? end : end - begin);
}

/// The program or library that holds some code.
struct CodeFile {
  std::string path;
  std::uint64_t offset = 0;  // of the code, as its symbol table counts
  Dl_info info{};
};

/// False: no file holds it.
bool find_file(const void* code, CodeFile& file) {
  link_map* map = nullptr;
  if (::dladdr1(code, &file.info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0)
    return false;
  const bool is_program = map == nullptr || map->l_name == nullptr || map->l_name[0] == '\0';
  file.path = is_program ? "/proc/self/exe" : map->l_name;
  file.offset = reinterpret_cast<std::uint64_t>(code) - (map == nullptr ? 0 : map->l_addr);
  return true;
}

std::string find_name(const void* function) {
  CodeFile file;
  if (!find_file(function, file)) return {};
  if (file.info.dli_sname != nullptr && file.info.dli_saddr == function)
    return readable(file.info.dli_sname);
  const std::string symbol = name_in_file(file.path.c_str(), file.offset, Where::kStart);
  return symbol.empty() ? symbol : readable(symbol);
}

}  // namespace

const char* kernel_name(const void* function, const char* fallback) {
  if (fallback == nullptr) fallback = "kernel";
  if (function == nullptr) return fallback;
  static std::mutex mutex;
  static std::map<const void*, std::string>& names = *new std::map<const void*, std::string>;
  const std::lock_guard lock(mutex);
  const auto [known, is_new] = names.try_emplace(function);
  if (is_new) known->second = find_name(function);
  return known->second.empty() ? fallback : known->second.c_str();
}

std::string code_place(const void* address) {
  CodeFile file;
  if (!find_file(address, file)) return fmt::format("{}", fmt::ptr(address));
  std::string symbol = name_in_file(file.path.c_str(), file.offset, Where::kInside);
  if (symbol.empty() && file.info.dli_sname != nullptr) symbol = file.info.dli_sname;
  return fmt::format("{} ({}+{:#x})",
                     symbol.empty() ? "a function without a name" : readable(symbol),
                     file.info.dli_fname, file.offset);
}

}  // namespace gimlet::device
