// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_GIN_IMPL_WINDOW_H
#define GIMLET_GIN_IMPL_WINDOW_H

#include "gin/impl/tables.h"

GIN_DEVICE_INLINE void* ginGetLocalPointer(ginWindow_t window, size_t offset) {
  return window->base + offset;
}

GIN_DEVICE_INLINE void* ginGetLsaPointer(ginWindow_t window, size_t offset, int lsaPeer) {
  return window->peers[window->lsaSlot + static_cast<uint32_t>(lsaPeer)].base + offset;
}

GIN_DEVICE_INLINE void* ginGetPeerPointer(ginWindow_t window, size_t offset, int worldPeer) {
  const int lsaPeer = worldPeer - window->lsaFirst;
  if (lsaPeer < 0 || lsaPeer >= window->lsaSize) return nullptr;
  return ginGetLsaPointer(window, offset, lsaPeer);
}

GIN_DEVICE_INLINE void* ginGetPeerPointer(ginWindow_t window, size_t offset, ginTeam_t team,
                                          int peer) {
  return ginGetPeerPointer(window, offset, window->rank + (peer - team.rank) * team.stride);
}

GIN_DEVICE_INLINE void* ginGetResourceBufferLocalPointer(ginDevComm const& comm,
                                                         ginDevResourceHandle_t handle) {
  return ginGetLocalPointer(comm.resourceWindow, ginGetResourceBufferOffset(handle));
}

GIN_DEVICE_INLINE void* ginGetResourceBufferLsaPointer(ginDevComm const& comm,
                                                       ginDevResourceHandle_t handle, int lsaPeer) {
  return ginGetLsaPointer(comm.resourceWindow, ginGetResourceBufferOffset(handle), lsaPeer);
}

GIN_DEVICE_INLINE void* ginGetResourceBufferPeerPointer(ginDevComm const& comm,
                                                        ginDevResourceHandle_t handle,
                                                        ginTeam_t team, int peer) {
  return ginGetPeerPointer(comm.resourceWindow, ginGetResourceBufferOffset(handle), team, peer);
}

namespace gin {

template <class T>
GIN_DEVICE_INLINE T* SymPtr<T>::localPtr() const {
  if (window == nullptr) return reinterpret_cast<T*>(offset);
  return static_cast<T*>(ginGetLocalPointer(window, offset));
}

template <class T>
GIN_DEVICE_INLINE T* SymPtr<T>::lsaPtr(int lsaPeer) const {
  return static_cast<T*>(ginGetLsaPointer(window, offset, lsaPeer));
}

template <class T>
GIN_DEVICE_INLINE T* SymPtr<T>::peerPtr(int worldPeer) const {
  return static_cast<T*>(ginGetPeerPointer(window, offset, worldPeer));
}

template <class T>
GIN_DEVICE_INLINE T* SymPtr<T>::peerPtr(ginTeam_t team, int peer) const {
  return static_cast<T*>(ginGetPeerPointer(window, offset, team, peer));
}

}  // namespace gin

#endif
