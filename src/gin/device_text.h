// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_DEVICE_TEXT_H
#define GIMLET_GIN_DEVICE_TEXT_H

#include <string>

#include "gin/impl/tables.h"

namespace gimlet::gin {

class Communicator;

/// The calling device thread: "kernel alltoall block 3 thread 0".
std::string calling_thread();

const char* operation_name(std::uint32_t operation);

/// "signal 5 of context 0", "PE 3 in barrier 0 of context 0".
std::string awaited_object(const Communicator& comm, const ginWait& wait);

/// What is wrong, and what is allowed: "put to PE 2: offset 64 and 8 bytes pass the end of ...".
std::string fault_sentence(const Communicator& comm, const ginFault& fault);

}  // namespace gimlet::gin

#endif
