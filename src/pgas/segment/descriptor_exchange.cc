// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/segment/descriptor_exchange.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "device/clock.h"

namespace gimlet::pgas {
namespace {

constexpr std::uint32_t kMagic = 0x676d6c78;         // "gmlx"
constexpr std::size_t kDescriptorsPerMessage = 128;  // the kernel takes at most 253
constexpr int kSliceMs = 200;
constexpr int kCrowdedMs = 1;

/// What a member says on arrival, with its descriptor attached when it offers one.
struct Greeting {
  std::uint32_t magic;
  std::int32_t member;
  std::uint64_t size;
  std::uint32_t has_descriptor;
  std::array<unsigned char, 16> secret;
};

/// Part of the leader's answer; descriptors of the entries that have one are attached in order.
struct AnswerPart {
  std::uint32_t magic;
  std::int32_t first;
  std::int32_t count;
  struct Entry {
    std::uint64_t size;
    std::uint32_t present;
    std::uint32_t has_descriptor;
  } entries[kDescriptorsPerMessage];
};

sockaddr_un address_of(const ExchangeTicket& ticket, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, ticket.name.data(),
              ticket.name.size());  // [0] is null: abstract
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + ticket.name.size());
  return address;
}

bool is_own_uid(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return false;
  return credentials.uid == ::geteuid();
}

/// Compares without an early exit, so that timing says nothing about the secret.
bool is_same_secret(const std::array<unsigned char, 16>& a,
                    const std::array<unsigned char, 16>& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

class Deadline {
 public:
  explicit Deadline(double seconds)
      : end_(device::now_ns() + static_cast<std::uint64_t>(seconds * 1e9)) {}
  bool passed() const { return device::now_ns() >= end_; }

 private:
  std::uint64_t end_;
};

/// The kernel lets an ordinary user have no more descriptors under way than RLIMIT_NOFILE; they
/// become fewer as the other members read theirs.
bool may_send_later(int error, const Deadline& deadline) {
  if (error == EINTR) return true;
  if (error != ETOOMANYREFS || deadline.passed()) return false;
  ::poll(nullptr, 0, kCrowdedMs);
  return true;
}

Status send_message(int socket, const void* data, std::size_t bytes, const std::vector<int>& fds,
                    const Deadline& deadline) {
  iovec part{const_cast<void*>(data), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsPerMessage * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && may_send_later(errno, deadline));
  if (sent < 0)
    return fail_errno(errno, "sending memory descriptors to a peer of this node failed");
  if (static_cast<std::size_t>(sent) != bytes) {
    return fail(Code::kSystem, "a descriptor message of {} bytes was cut to {}", bytes, sent);
  }
  return {};
}

/// One message of a sequenced-packet socket. False when the connection ended or the message is not
/// of this size.
bool receive_message(int socket, void* data, std::size_t bytes, std::vector<UniqueFd>& fds) {
  iovec part{data, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsPerMessage * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
  const bool cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  return !cut && static_cast<std::size_t>(got) == bytes;
}

Status answer(int socket, const std::vector<DescriptorOffer>& offers, const Deadline& deadline) {
  const int total = static_cast<int>(offers.size());
  for (int first = 0; first < total;) {
    AnswerPart part{};
    part.magic = kMagic;
    part.first = first;
    part.count = std::min(total - first, static_cast<int>(kDescriptorsPerMessage));
    std::vector<int> fds;
    for (int i = 0; i < part.count; ++i) {
      const DescriptorOffer& offer =
          offers[static_cast<std::size_t>(first) + static_cast<std::size_t>(i)];
      part.entries[i] = {offer.size, offer.present ? 1u : 0u, offer.fd.valid() ? 1u : 0u};
      if (offer.fd.valid()) fds.push_back(offer.fd.get());
    }
    GIMLET_TRY(send_message(socket, &part, sizeof part, fds, deadline));
    first += part.count;
  }
  return {};
}

bool is_hopeless(const ExchangeLimits& limits) {
  return limits.hopeless && limits.hopeless();
}

bool wait_readable(int socket, int timeout_ms) {
  pollfd entry{socket, POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) > 0;
}

bool place_part(const AnswerPart& part, std::vector<UniqueFd>& fds,
                std::vector<DescriptorOffer>& offers) {
  const int total = static_cast<int>(offers.size());
  if (part.magic != kMagic || part.first < 0 || part.count <= 0 || part.first + part.count > total)
    return false;
  if (part.count > static_cast<int>(kDescriptorsPerMessage)) return false;
  std::size_t next = 0;
  for (int i = 0; i < part.count; ++i) {
    DescriptorOffer& offer =
        offers[static_cast<std::size_t>(part.first) + static_cast<std::size_t>(i)];
    offer.size = part.entries[i].size;
    offer.present = part.entries[i].present != 0;
    if (part.entries[i].has_descriptor == 0) continue;
    if (next == fds.size()) return false;
    offer.fd = std::move(fds[next++]);
  }
  return next == fds.size();
}

}  // namespace

Status DescriptorLeader::open(std::unique_ptr<DescriptorLeader>& out) {
  std::unique_ptr<DescriptorLeader> leader(new DescriptorLeader);
  std::array<unsigned char, 16> name{};
  if (::getrandom(name.data(), name.size(), 0) != static_cast<ssize_t>(name.size()) ||
      ::getrandom(leader->ticket_.secret.data(), leader->ticket_.secret.size(), 0) !=
          static_cast<ssize_t>(leader->ticket_.secret.size())) {
    return fail_errno(errno, "getrandom failed");
  }
  for (std::size_t i = 0; i < name.size(); ++i) {
    constexpr char kHex[] = "0123456789abcdef";
    leader->ticket_.name[2 * i] = kHex[name[i] >> 4];
    leader->ticket_.name[2 * i + 1] = kHex[name[i] & 15];
  }
  leader->listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!leader->listener_.valid()) return fail_errno(errno, "a unix socket can't be made");
  socklen_t length = 0;
  const sockaddr_un address = address_of(leader->ticket_, length);
  if (::bind(leader->listener_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(leader->listener_.get(), SOMAXCONN) != 0) {
    return fail_errno(errno, "listening for the peers of this node failed");
  }
  out = std::move(leader);
  return {};
}

bool DescriptorLeader::admit(UniqueFd guest, std::vector<UniqueFd>& connections,
                             std::vector<DescriptorOffer>& offers) {
  Greeting greeting{};
  std::vector<UniqueFd> fds;
  if (!receive_message(guest.get(), &greeting, sizeof greeting, fds)) return false;
  if (greeting.magic != kMagic || !is_same_secret(greeting.secret, ticket_.secret)) return false;
  // A negative number becomes a large one. The leader's own number is taken.
  const auto member = static_cast<std::size_t>(greeting.member);
  if (member >= offers.size() || offers[member].present) return false;
  if (fds.size() != (greeting.has_descriptor != 0 ? 1u : 0u)) return false;
  offers[member].present = true;
  offers[member].size = greeting.size;
  if (!fds.empty()) offers[member].fd = std::move(fds.front());
  connections[member] = std::move(guest);
  return true;
}

void DescriptorLeader::welcome(std::vector<UniqueFd>& guests, std::vector<UniqueFd>& connections,
                               std::vector<DescriptorOffer>& offers, int timeout_ms) {
  std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
  for (const UniqueFd& guest : guests) entries.push_back({guest.get(), POLLIN, 0});
  if (::poll(entries.data(), entries.size(), timeout_ms) <= 0) return;

  std::vector<UniqueFd> silent;  // connected, has not spoken yet
  for (std::size_t i = 0; i < guests.size(); ++i) {
    if (entries[i + 1].revents == 0) {
      silent.push_back(std::move(guests[i]));
    } else if (!admit(std::move(guests[i]), connections, offers)) {
      ++refused_;
    }
  }
  guests = std::move(silent);
  for (;;) {
    UniqueFd guest(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!guest.valid()) return;
    if (is_own_uid(guest.get())) {
      guests.push_back(std::move(guest));
    } else {
      ++refused_;
    }
  }
}

Status DescriptorLeader::serve(int members, DescriptorOffer own, const ExchangeLimits& limits,
                               std::vector<DescriptorOffer>& offers) {
  offers.clear();
  offers.resize(static_cast<std::size_t>(members));
  own.present = true;
  offers[0] = std::move(own);
  std::vector<UniqueFd> connections(offers.size());
  std::vector<UniqueFd> guests;
  std::vector<bool> absent(offers.size(), false);

  const Deadline deadline(limits.seconds);
  std::uint64_t next_question = device::now_ns() + 1'000'000'000u;
  for (;;) {
    const auto awaited = [&](std::size_t m) { return !offers[m].present && !absent[m]; };
    std::size_t missing = 0;
    std::size_t example = 0;
    for (std::size_t m = 1; m < offers.size(); ++m) {
      if (!awaited(m)) continue;
      ++missing;
      example = m;
    }
    if (missing == 0) break;
    if (is_hopeless(limits))
      return fail(Code::kRemote, "a PE of this node died while memory was exchanged");
    if (deadline.passed()) {
      return fail(Code::kTimeout,
                  "{} of {} PEs of this node did not arrive within {} s to exchange memory; one is "
                  "number {} of the node",
                  missing, members, limits.seconds, example);
    }
    welcome(guests, connections, offers, kSliceMs);
    if (limits.absent && device::now_ns() >= next_question) {
      for (std::size_t m = 1; m < offers.size(); ++m) {
        if (awaited(m)) absent[m] = limits.absent(static_cast<int>(m));
      }
      next_question = device::now_ns() + 1'000'000'000u;
    }
  }
  for (std::size_t m = 1; m < connections.size(); ++m) {
    // A member that died after its greeting is noticed by whoever talks to it next.
    if (connections[m].valid()) (void)answer(connections[m].get(), offers, deadline);
  }
  return {};
}

Status exchange_with_leader(const ExchangeTicket& ticket, int member, int members,
                            DescriptorOffer own, const ExchangeLimits& limits,
                            std::vector<DescriptorOffer>& offers) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail_errno(errno, "a unix socket can't be made");
  socklen_t length = 0;
  const sockaddr_un address = address_of(ticket, length);
  int connected;
  do {
    connected = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length);
  } while (connected != 0 && errno == EINTR);
  if (connected != 0)
    return fail_errno(errno, "the first PE of this node can't be reached by a unix socket");
  if (!is_own_uid(socket.get())) {
    return fail(Code::kRemote, "the first PE of this node runs under another user");
  }
  const Greeting greeting{kMagic, member, own.size, own.fd.valid() ? 1u : 0u, ticket.secret};
  std::vector<int> fds;
  if (own.fd.valid()) fds.push_back(own.fd.get());
  const Deadline deadline(limits.seconds);
  GIMLET_TRY(send_message(socket.get(), &greeting, sizeof greeting, fds, deadline));

  offers.clear();
  offers.resize(static_cast<std::size_t>(members));
  for (int received = 0; received < members;) {
    if (!wait_readable(socket.get(), kSliceMs)) {
      if (is_hopeless(limits))
        return fail(Code::kRemote, "a PE of this node died while memory was exchanged");
      if (deadline.passed()) {
        return fail(Code::kTimeout, "the first PE of this node did not answer within {} s",
                    limits.seconds);
      }
      continue;
    }
    AnswerPart part{};
    std::vector<UniqueFd> descriptors;
    if (!receive_message(socket.get(), &part, sizeof part, descriptors) ||
        !place_part(part, descriptors, offers)) {
      return fail(Code::kRemote,
                  "the first PE of this node closed the exchange of memory descriptors");
    }
    received = part.first + part.count;
  }
  return {};
}

}  // namespace gimlet::pgas
