// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_ERROR_WORD_H
#define GIMLET_GIN_ERROR_WORD_H

#include <cstdint>

#include "gin/impl/tables.h"
#include "gin/result.h"

namespace gimlet::gin {

struct ErrorRecord {
  ginResult_t code = ginSuccess;
  int rank = -1;  // that detected it
  int peer = -1;  // world rank, or -1
  ginOperation operation = ginOpNone;
  std::uint64_t offset = 0;
};

/// Sets an error word unless it is set already; true for the one caller that did.
bool set_error(ginErrorWord& word, const ErrorRecord& record);

/// ginSuccess while the word is fine. Never blocks: ginInternalError in the moment of writing.
ginResult_t read_error(const ginErrorWord& word);

/// Sets the words of all ranks that a device communicator reaches: the own one to `own`, which
/// others see as ginRemoteError. True when this call set the own word.
bool set_errors(const ginDevComm& comm, const ErrorRecord& own);

}  // namespace gimlet::gin

#endif
