// SPDX-License-Identifier: BSD-3-Clause
#pragma GCC visibility push(default)
#include "gin/result.h"
#pragma GCC visibility pop

#include "gin/status_result.h"

#include <string>

#include "device/log.h"

namespace gimlet::gin {
namespace {

thread_local std::string last_error;

}  // namespace

ginResult_t result_of(Code code) {
  switch (code) {
    case Code::kOk:
      return ginSuccess;
    case Code::kInvalidArgument:
    case Code::kUnreachable:
      return ginInvalidArgument;
    case Code::kInvalidUsage:
      return ginInvalidUsage;
    case Code::kNoMemory:
    case Code::kSystem:
      return ginSystemError;
    case Code::kRemote:
      return ginRemoteError;
    case Code::kTimeout:
      return ginTimeout;
    case Code::kInternal:
      return ginInternalError;
  }
  return ginInternalError;
}

ginResult_t finish(const char* call, const Status& status) {
  if (status.ok()) return ginSuccess;
  last_error = fmt::format("{}: {}", call, status.message());
  log::error("{}", last_error);
  return result_of(status.code());
}

}  // namespace gimlet::gin

extern "C" const char* ginGetErrorString(ginResult_t result) {
  switch (result) {
    case ginSuccess:
      return "no error";
    case ginUnhandledCudaError:
      return "the device failed";
    case ginSystemError:
      return "a system call or a library below failed";
    case ginInternalError:
      return "the communicator was aborted, or an invariant of Gimlet is broken";
    case ginInvalidArgument:
      return "a value is not allowed";
    case ginInvalidUsage:
      return "allowed values at the wrong moment or in a wrong combination";
    case ginRemoteError:
      return "another rank failed";
    case ginInProgress:
      return "not yet complete";
    case ginTimeout:
      return "a wait lasted longer than it may";
    case ginNumResults:
      break;
  }
  return "not a result of Gimlet";
}

extern "C" const char* ginGetLastError(void) {
  return gimlet::gin::last_error.c_str();
}
