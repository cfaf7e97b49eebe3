// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "pgas/bootstrap/bootstrap.h"

namespace gimlet::pgas {
namespace {

const std::atomic<int> nobody{-1};

/// No launcher: one PE.
class Single final : public Bootstrap {
 public:
  const char* name() const override { return "single"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::vector<int>& node_ranks() const override { return node_ranks_; }

  Status put(const std::string& key, std::span<const std::byte> blob) override {
    blobs_[key].assign(blob.begin(), blob.end());
    return {};
  }
  Status commit() override { return {}; }
  Status fence() override { return {}; }
  Status get(int rank, const std::string& key, double seconds,
             std::vector<std::byte>& blob) override {
    const auto found = blobs_.find(key);
    if (rank != 0 || found == blobs_.end()) {
      return fail(Code::kTimeout, "PE {} did not publish {} within {} s", rank, key, seconds);
    }
    blob = found->second;
    return {};
  }
  const std::atomic<int>& dead_peer_word() const override { return nobody; }
  [[noreturn]] void abort(int status, const std::string&) override { ::_exit(status); }

 private:
  std::vector<int> node_ranks_{0};
  std::map<std::string, std::vector<std::byte>> blobs_;
};

}  // namespace

std::unique_ptr<Bootstrap> make_single_bootstrap() {
  return std::make_unique<Single>();
}

Status make_bootstrap(std::unique_ptr<Bootstrap>& out) {
  if (std::getenv("PMIX_NAMESPACE") != nullptr && std::getenv("PMIX_RANK") != nullptr) {
    return make_pmix_bootstrap(out);
  }
  out = make_single_bootstrap();
  return {};
}

}  // namespace gimlet::pgas
