// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_DEVICE_CPU_JUMP_H
#define GIMLET_DEVICE_CPU_JUMP_H

#include <boost/context/detail/fcontext.hpp>

extern "C" boost::context::detail::transfer_t gimlet_jump_fcontext(
    boost::context::detail::fcontext_t to, void* data);

namespace gimlet::device {

/// jump_fcontext, without its cost to the returns that follow. jump_fcontext is called but comes
/// back by a jump, which leaves the processor's stack of predicted returns one entry too deep:
/// every later return of the fiber, one a frame, is then mispredicted (measured: 43 instead of 17
/// ns a hand-over). Fibers of a kernel call from the same places, so in balance the predictions
/// hold.
inline boost::context::detail::transfer_t jump(boost::context::detail::fcontext_t to, void* data) {
#if defined(__x86_64__)
  return gimlet_jump_fcontext(to, data);
#else
  return boost::context::detail::jump_fcontext(to, data);
#endif
}

}  // namespace gimlet::device

#endif
