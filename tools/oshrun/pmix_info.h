// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_PMIX_INFO_H
#define GIMLET_TOOLS_OSHRUN_PMIX_INFO_H

#include <pmix.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gimlet::oshrun {

// A ranked number is its own PMIx type although it is a plain integer in C.
struct PmixRank {
  pmix_rank_t rank;
};

// A growing array of pmix_info_t that frees what its members own.
class PmixInfo {
 public:
  PmixInfo() = default;
  PmixInfo(const PmixInfo&) = delete;
  PmixInfo& operator=(const PmixInfo&) = delete;
  ~PmixInfo() {
    for (pmix_info_t& info : infos_) PMIX_INFO_DESTRUCT(&info);
  }

  void add(const char* key, bool value) { load(key, &value, PMIX_BOOL); }
  void add(const char* key, int value) { load(key, &value, PMIX_INT); }
  void add(const char* key, std::uint16_t value) { load(key, &value, PMIX_UINT16); }
  void add(const char* key, std::uint32_t value) { load(key, &value, PMIX_UINT32); }
  void add(const char* key, PmixRank value) { load(key, &value.rank, PMIX_PROC_RANK); }
  void add(const char* key, const char* value) { load(key, value, PMIX_STRING); }
  void add(const char* key, const std::string& value) { add(key, value.c_str()); }
  void add(const char* key, pmix_proc_t& value) { load(key, &value, PMIX_PROC); }
  // A map made by PMIx_generate_regex or PMIx_generate_ppn: may be compressed, so not a string.
  void add_map(const char* key, const char* map) { load(key, map, PMIX_REGEX); }
  void add_pointer(const char* key, void* value) { load(key, value, PMIX_POINTER); }
  // An array of infos as one member; its contents are copied.
  void add(const char* key, PmixInfo& members) {
    pmix_data_array_t array{PMIX_INFO, members.size(), members.data()};
    load(key, &array, PMIX_DATA_ARRAY);
  }

  [[nodiscard]] pmix_info_t* data() { return infos_.data(); }
  [[nodiscard]] std::size_t size() const { return infos_.size(); }

 private:
  void load(const char* key, const void* value, pmix_data_type_t type) {
    // Members are plain structs that own heap memory, so that moving them bytewise is right.
    pmix_info_t& info = infos_.emplace_back();
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, key, const_cast<void*>(value), type);
  }

  std::vector<pmix_info_t> infos_;
};

}  // namespace gimlet::oshrun

#endif
