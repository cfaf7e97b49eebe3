// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_AGREED_SETTINGS_H
#define GIMLET_GIN_AGREED_SETTINGS_H

#include "device/status.h"
#include "pgas/group.h"

namespace gimlet::gin {

/// Some settings must be the same on all ranks of a communicator, because each rank concludes from
/// its own what the others do. A difference fails on all ranks, with one sentence that names it.
/// `rank_word`: what sentences call a member. Collective.
Status check_agreed_settings(pgas::Group& group, const char* rank_word);

}  // namespace gimlet::gin

#endif
