// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_STATUS_H
#define GIMLET_DEVICE_STATUS_H

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace gimlet {

enum class Code : unsigned char {
  kOk = 0,
  kInvalidArgument,  // the caller passed something that is not allowed
  kInvalidUsage,     // allowed values, wrong moment or combination
  kNoMemory,         // heap, descriptors or address space ran out
  kSystem,           // a system call or a library below us failed
  kRemote,           // a peer failed or is gone
  kTimeout,
  kUnreachable,  // no transport or path to that peer
  kInternal,     // one of our own invariants does not hold
};

/// Result of everything inside the library that can fail: one pointer, null when all is well.
/// Whoever first detects an error writes the sentence; callers only pass it on.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message)
      : failure_(std::make_unique<Failure>(Failure{code, std::move(message)})) {}

  bool ok() const { return failure_ == nullptr; }
  Code code() const { return failure_ ? failure_->code : Code::kOk; }
  const std::string& message() const {
    static const std::string none;
    return failure_ ? failure_->message : none;
  }

 private:
  struct Failure {
    Code code;
    std::string message;
  };
  std::unique_ptr<Failure> failure_;
};

template <class... Args>
Status fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

/// A failed system call: the sentence ends with the text of `error` (an errno value).
template <class... Args>
Status fail_errno(int error, fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kSystem,
                fmt::format(format, std::forward<Args>(args)...) + ": " + ::strerrordesc_np(error));
}

}  // namespace gimlet

/// Returns the failed status of `expression` from the enclosing function.
#define GIMLET_TRY(expression)                                                                    \
  do {                                                                                            \
    if (::gimlet::Status gimlet_status = (expression); !gimlet_status.ok()) return gimlet_status; \
  } while (false)

#endif
