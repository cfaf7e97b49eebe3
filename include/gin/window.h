// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_WINDOW_H
#define GIMLET_GIN_WINDOW_H

#include <stddef.h>

#include "gin/dev_comm.h"
#include "gin/platform.h"
#include "gin/team.h"

/// Addresses of windows in kernels. Offsets are bytes and are not checked here; loads and stores
/// through the addresses are the program's own, and ordered by the program.

/// Address of this rank's part.
GIN_DEVICE_INLINE void* ginGetLocalPointer(ginWindow_t window, size_t offset);

/// Address of the part of a member of the load/store-accessible team.
GIN_DEVICE_INLINE void* ginGetLsaPointer(ginWindow_t window, size_t offset, int lsaPeer);

/// Address of the part of a world rank, or of a member of `team`; null when it is not in the
/// load/store-accessible team.
GIN_DEVICE_INLINE void* ginGetPeerPointer(ginWindow_t window, size_t offset, int worldPeer);
GIN_DEVICE_INLINE void* ginGetPeerPointer(ginWindow_t window, size_t offset, ginTeam_t team,
                                          int peer);

/// Place of a resource buffer in ginDevComm::resourceWindow, in bytes.
GIN_HOST_DEVICE_INLINE size_t ginGetResourceBufferOffset(ginDevResourceHandle_t handle) {
  return static_cast<size_t>(handle) * 128;
}

namespace gin {

/// A typed place in a window: arithmetic is in elements, as with a T*.
template <class T>
struct SymPtr {
  using ElementType = T;
  ginWindow_t window;
  size_t offset; /* bytes */

  GIN_HOST_DEVICE_INLINE constexpr SymPtr(ginWindow_t w = nullptr, size_t o = 0)
      : window(w), offset(o) {}

  template <class U>
  GIN_HOST_DEVICE_INLINE constexpr operator SymPtr<U>() const {
    return SymPtr<U>(window, offset);
  }

  template <class Int>
  GIN_HOST_DEVICE_INLINE SymPtr& operator+=(Int elements) {
    offset += static_cast<size_t>(elements) * sizeof(T);
    return *this;
  }
  template <class Int>
  GIN_HOST_DEVICE_INLINE SymPtr& operator-=(Int elements) {
    offset -= static_cast<size_t>(elements) * sizeof(T);
    return *this;
  }

  /// Addresses as above. A null window stands for all memory: the offset is then the address.
  GIN_DEVICE_INLINE T* localPtr() const;
  GIN_DEVICE_INLINE T* lsaPtr(int lsaPeer) const;
  GIN_DEVICE_INLINE T* peerPtr(int worldPeer) const;
  GIN_DEVICE_INLINE T* peerPtr(ginTeam_t team, int peer) const;
};

template <class T, class Int>
GIN_HOST_DEVICE_INLINE SymPtr<T> operator+(SymPtr<T> p, Int elements) {
  return p += elements;
}
template <class T, class Int>
GIN_HOST_DEVICE_INLINE SymPtr<T> operator-(SymPtr<T> p, Int elements) {
  return p -= elements;
}
template <class T>
GIN_HOST_DEVICE_INLINE ptrdiff_t operator-(SymPtr<T> a, SymPtr<T> b) {
  return static_cast<ptrdiff_t>(a.offset - b.offset) / static_cast<ptrdiff_t>(sizeof(T));
}
template <class T>
GIN_HOST_DEVICE_INLINE bool operator==(SymPtr<T> a, SymPtr<T> b) {
  return a.window == b.window && a.offset == b.offset;
}
template <class T>
GIN_HOST_DEVICE_INLINE bool operator!=(SymPtr<T> a, SymPtr<T> b) {
  return !(a == b);
}

}  // namespace gin

/// A resource buffer, as a place in its window and as addresses.
GIN_HOST_DEVICE_INLINE gin::SymPtr<char> ginGetResourceBuffer(ginDevComm const& comm,
                                                              ginDevResourceHandle_t handle) {
  return gin::SymPtr<char>(comm.resourceWindow, ginGetResourceBufferOffset(handle));
}
GIN_DEVICE_INLINE void* ginGetResourceBufferLocalPointer(ginDevComm const& comm,
                                                         ginDevResourceHandle_t handle);
GIN_DEVICE_INLINE void* ginGetResourceBufferLsaPointer(ginDevComm const& comm,
                                                       ginDevResourceHandle_t handle, int lsaPeer);
GIN_DEVICE_INLINE void* ginGetResourceBufferPeerPointer(ginDevComm const& comm,
                                                        ginDevResourceHandle_t handle,
                                                        ginTeam_t team, int peer);

#include "gin/impl/window.h"

#endif
