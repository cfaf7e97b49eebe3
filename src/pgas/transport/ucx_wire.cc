// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/ucx_wire.h"

#include <cstring>

namespace gimlet::pgas::ucx {
namespace {

// Changes with the layout of the blob or of MessageHeader, so that PEs of different releases refuse
// each other instead of misreading.
constexpr std::uint32_t kVersion = 0x47580004;

class Writer {
 public:
  template <class Value>
  void value(const Value& v) {
    const auto* first = reinterpret_cast<const std::byte*>(&v);
    out_.insert(out_.end(), first, first + sizeof v);
  }
  void bytes(const std::vector<std::byte>& data) {
    value(static_cast<std::uint32_t>(data.size()));
    out_.insert(out_.end(), data.begin(), data.end());
  }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}
  template <class Value>
  bool value(Value& v) {
    if (in_.size() < sizeof v) return false;
    std::memcpy(&v, in_.data(), sizeof v);
    in_ = in_.subspan(sizeof v);
    return true;
  }
  bool bytes(std::vector<std::byte>& data) {
    std::uint32_t length = 0;
    if (!value(length) || in_.size() < length) return false;
    data.assign(in_.begin(), in_.begin() + length);
    in_ = in_.subspan(length);
    return true;
  }
  std::size_t left() const { return in_.size(); }

 private:
  std::span<const std::byte> in_;
};

}  // namespace

std::vector<std::byte> encode(const Blob& blob) {
  Writer out;
  out.value(kVersion);
  out.bytes(blob.worker_address);
  out.value(static_cast<std::uint16_t>(blob.segments.size()));
  for (const RemoteSegment& segment : blob.segments) {
    out.value(segment.base);
    out.value(segment.size);
    out.bytes(segment.key);
  }
  return out.take();
}

Status decode(std::span<const std::byte> bytes, Blob& blob) {
  Reader in(bytes);
  std::uint32_t version = 0;
  if (!in.value(version) || version != kVersion)
    return fail(Code::kRemote, "its UCX address is of another release of Gimlet");
  std::uint16_t count = 0;
  bool whole = in.bytes(blob.worker_address) && in.value(count);
  blob.segments.resize(whole ? count : 0);
  for (RemoteSegment& segment : blob.segments)
    whole = whole && in.value(segment.base) && in.value(segment.size) && in.bytes(segment.key);
  if (!whole || in.left() != 0)
    return fail(Code::kRemote, "its UCX address of {} bytes is cut or damaged", bytes.size());
  return {};
}

}  // namespace gimlet::pgas::ucx
