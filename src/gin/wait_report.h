// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_WAIT_REPORT_H
#define GIMLET_GIN_WAIT_REPORT_H

#include <atomic>
#include <cstdint>

namespace gimlet::gin {

/// How many lines about long waits a communicator may still write: a stuck kernel has thousands of
/// waits, and the first few say why.
class ReportBudget {
 public:
  static constexpr std::uint32_t kLines = 16;

  /// True when one more line may be written in the interval that holds `now`; `unsaid` is then the
  /// number of lines that the interval before lacks.
  bool take(std::uint64_t now_ns, std::uint64_t interval_ns, std::uint32_t& unsaid);

 private:
  std::atomic<std::uint64_t> interval_start_{0};
  std::atomic<std::uint32_t> lines_{0};
};

}  // namespace gimlet::gin

#endif
