// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_SEGMENT_DESCRIPTOR_EXCHANGE_H
#define GIMLET_PGAS_SEGMENT_DESCRIPTOR_EXCHANGE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "device/status.h"
#include "device/unique_fd.h"

namespace gimlet::pgas {

/// How processes of one node give each other memory descriptors: all members of a group connect
/// once to the leader's abstract unix socket, hand in their own descriptor, and get everybody's
/// back. N connections for N members, nothing in the file system.
///
/// Rules. The socket's name and the secret travel only by the bootstrap. The leader answers nobody
/// who does not have its own uid (SO_PEERCRED), the 128-bit secret and a member number that is
/// still awaited; a member checks the leader's uid before it sends. A stranger's connection is
/// closed without a byte, and does not hold up the members. Every wait ends by `limits`.
/// Descriptors belong to whoever holds the Offer.
struct ExchangeTicket {
  std::array<char, 32> name;  // of the abstract socket, without the leading null
  std::array<unsigned char, 16> secret;
};

struct DescriptorOffer {
  UniqueFd fd;  // not valid: this member offers nothing, or could not be reached
  std::uint64_t size = 0;
  bool present = false;  // the member took part
};

struct ExchangeLimits {
  double seconds = 60;
  /// True ends the wait: a member died.
  std::function<bool()> hopeless;
  /// Members that will never connect (asked about once a second; may be empty).
  std::function<bool(int member)> absent;
};

class DescriptorLeader {
 public:
  /// Listens on a fresh random name. The ticket must reach the other members over a private
  /// channel.
  static Status open(std::unique_ptr<DescriptorLeader>& out);
  const ExchangeTicket& ticket() const { return ticket_; }

  /// Waits for members 1..members-1 (this leader is member 0 and gives `own`), answers them all,
  /// fills offers[0..members-1].
  Status serve(int members, DescriptorOffer own, const ExchangeLimits& limits,
               std::vector<DescriptorOffer>& offers);
  /// Connections that were closed because uid, secret or member number were wrong.
  int refused() const { return refused_; }

 private:
  DescriptorLeader() = default;
  void welcome(std::vector<UniqueFd>& guests, std::vector<UniqueFd>& connections,
               std::vector<DescriptorOffer>& offers, int timeout_ms);
  bool admit(UniqueFd guest, std::vector<UniqueFd>& connections,
             std::vector<DescriptorOffer>& offers);

  ExchangeTicket ticket_{};
  UniqueFd listener_;
  int refused_ = 0;
};

/// The other side: member `member` (1 or more) hands in `own` and receives everybody's.
Status exchange_with_leader(const ExchangeTicket& ticket, int member, int members,
                            DescriptorOffer own, const ExchangeLimits& limits,
                            std::vector<DescriptorOffer>& offers);

}  // namespace gimlet::pgas

#endif
