// SPDX-License-Identifier: BSD-3-Clause
#include "config.h"

namespace gimlet {

// Readable in any binary or core file that holds the library: strings libgimlet.so | grep
// gimlet-version
extern const char kVersionStamp[];
[[gnu::used]] const char kVersionStamp[] = "gimlet-version " GIMLET_VERSION;

}  // namespace gimlet
