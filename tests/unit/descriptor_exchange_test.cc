// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/segment/descriptor_exchange.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "child.h"
#include "suite.h"

namespace {

using gimlet::Code;
using gimlet::Status;
using gimlet::UniqueFd;
using gimlet::pgas::DescriptorLeader;
using gimlet::pgas::DescriptorOffer;
using gimlet::pgas::exchange_with_leader;
using gimlet::pgas::ExchangeLimits;
using gimlet::pgas::ExchangeTicket;
using gimlet::tests::ended_well;
using gimlet::tests::in_child;

constexpr uid_t kOtherUser = 65534;
using Offers = std::vector<DescriptorOffer>;

std::unique_ptr<DescriptorLeader> open_leader() {
  std::unique_ptr<DescriptorLeader> leader;
  ck_assert(DescriptorLeader::open(leader).ok());
  return leader;
}

/// A descriptor whose bytes are the number of its member.
DescriptorOffer offer_of(int member) {
  DescriptorOffer offer;
  offer.fd.reset(::memfd_create("offer", MFD_CLOEXEC));
  ck_assert(::write(offer.fd.get(), &member, sizeof member) == sizeof member);
  offer.size = 1000 + static_cast<std::uint64_t>(member);
  return offer;
}

bool is_offer_of(const DescriptorOffer& offer, int member) {
  int content = -1;
  return offer.present && offer.size == 1000 + static_cast<std::uint64_t>(member) &&
         ::pread(offer.fd.get(), &content, sizeof content, 0) == sizeof content &&
         content == member;
}

bool are_complete(const Offers& offers, int members) {
  if (offers.size() != static_cast<std::size_t>(members)) return false;
  for (int m = 0; m < members; ++m) {
    if (!is_offer_of(offers[static_cast<std::size_t>(m)], m)) return false;
  }
  return true;
}

ExchangeLimits within(double seconds) {
  ExchangeLimits limits;
  limits.seconds = seconds;
  return limits;
}

bool take_part(const ExchangeTicket& ticket, int member, int members) {
  Offers offers;
  const Status status =
      exchange_with_leader(ticket, member, members, offer_of(member), within(20), offers);
  if (!status.ok()) std::fprintf(stderr, "member %d: %s\n", member, status.message().c_str());
  return status.ok() && are_complete(offers, members);
}

pid_t start_member(const ExchangeTicket& ticket, int member, int members) {
  return in_child([&ticket, member, members] { return take_part(ticket, member, members); });
}

bool exchange_among(int members) {
  const auto leader = open_leader();
  std::vector<pid_t> children;
  for (int m = 1; m < members; ++m) {
    children.push_back(start_member(leader->ticket(), m, members));
  }
  Offers offers;
  const Status status = leader->serve(members, offer_of(0), within(20), offers);
  if (!status.ok()) std::fprintf(stderr, "leader: %s\n", status.message().c_str());
  bool good = status.ok() && are_complete(offers, members) && leader->refused() == 0;
  for (const pid_t child : children) good = ended_well(child) && good;
  return good;
}

// ---- what a stranger can say

/// The greeting as it is on the wire, so that a stranger can tell lies with it.
struct Greeting {
  std::uint32_t magic = 0x676d6c78;
  std::int32_t member = 1;
  std::uint64_t size = 1001;
  std::uint32_t has_descriptor = 0;
  std::array<unsigned char, 16> secret{};
};

UniqueFd connect_to(const ExchangeTicket& ticket) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, ticket.name.data(), ticket.name.size());
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + ticket.name.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    socket.reset();
  return socket;
}

bool say(int socket, const void* bytes, std::size_t size, int descriptors) {
  iovec part{const_cast<void*>(bytes), size};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptors > 0) {
    const auto room = static_cast<std::size_t>(descriptors) * sizeof(int);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(room);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(room);
    const int fd = STDERR_FILENO;
    for (int i = 0; i < descriptors; ++i)
      std::memcpy(CMSG_DATA(header) + static_cast<std::size_t>(i) * sizeof fd, &fd, sizeof fd);
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

/// True when the other side sends nothing at all, neither bytes nor descriptors, and hangs up.
bool gets_nothing(int socket) {
  char bytes[64];
  iovec part{bytes, sizeof bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(socket, &message, 0);
  if (got < 0) return errno == ECONNRESET;
  return got == 0 && message.msg_controllen == 0;
}

/// A stranger with this greeting gets nothing while `members` members exchange as usual.
void refuse(const Greeting& greeting, std::size_t size, int descriptors, int members = 2,
            uid_t user = 0) {
  const auto leader = open_leader();
  int order[2];
  ck_assert(::pipe(order) == 0);
  const pid_t stranger = in_child([&] {
    if (user != 0 && ::setuid(user) != 0) return false;
    const UniqueFd socket = connect_to(leader->ticket());
    const bool spoke = socket.valid();
    // A leader that looks at the uid hangs up before this; then nothing is to be said.
    if (spoke) (void)say(socket.get(), &greeting, size, descriptors);
    const bool told = ::write(order[1], "x", 1) == 1;
    return spoke && told && gets_nothing(socket.get());
  });
  char sign = 0;
  // The stranger comes first: its greeting waits when the members arrive.
  ck_assert(::read(order[0], &sign, 1) == 1);
  std::vector<pid_t> children;
  for (int m = 1; m < members; ++m) children.push_back(start_member(leader->ticket(), m, members));
  Offers offers;
  const Status status = leader->serve(members, offer_of(0), within(20), offers);
  ck_assert_msg(status.ok(), "%s", status.message().c_str());
  ck_assert(are_complete(offers, members));
  ck_assert_int_eq(leader->refused(), 1);
  for (const pid_t child : children) ck_assert(ended_well(child));
  ck_assert(ended_well(stranger));
}

Greeting true_greeting(const ExchangeTicket& ticket, int member) {
  Greeting greeting;
  greeting.member = member;
  greeting.secret = ticket.secret;
  return greeting;
}

bool greet(int socket, const ExchangeTicket& ticket, int member) {
  const Greeting greeting = true_greeting(ticket, member);
  return say(socket, &greeting, sizeof greeting, 0);
}

/// True when the leader takes nobody for member 1. It gives up once it has refused more than
/// `before` strangers.
bool serves_nobody(DescriptorLeader& leader, int before = 0) {
  Offers offers;
  ExchangeLimits limits = within(20);
  limits.hopeless = [&] { return leader.refused() > before; };
  return leader.serve(2, offer_of(0), limits, offers).code() == Code::kRemote && !offers[1].present;
}

int open_descriptors() {
  int count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

// ---- tests

START_TEST(two_members) {
  ck_assert(exchange_among(2));
}
END_TEST

START_TEST(three_members) {
  ck_assert(exchange_among(3));
}
END_TEST

/// More than fit one message.
START_TEST(hundred_and_thirty_five_members) {
  ck_assert(exchange_among(135));
}
END_TEST

/// Descriptors under way count against RLIMIT_NOFILE of an ordinary user: members x members of them
/// must not be more than the kernel takes.
START_TEST(an_ordinary_user_can_have_many_members) {
  const pid_t user = in_child([] {
    const rlimit limit{128, 128};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    if (::geteuid() == 0 && ::setuid(kOtherUser) != 0) return false;
    return exchange_among(40);
  });
  ck_assert(ended_well(user));
}
END_TEST

START_TEST(one_member_alone) {
  ck_assert(exchange_among(1));
}
END_TEST

START_TEST(members_may_offer_nothing) {
  const auto leader = open_leader();
  const pid_t child = in_child([&] {
    Offers offers;
    const Status status =
        exchange_with_leader(leader->ticket(), 1, 2, DescriptorOffer(), within(20), offers);
    return status.ok() && offers[1].present && !offers[1].fd.valid() && is_offer_of(offers[0], 0);
  });
  Offers offers;
  ck_assert(leader->serve(2, offer_of(0), within(20), offers).ok());
  ck_assert(offers[1].present && !offers[1].fd.valid());
  ck_assert(ended_well(child));
}
END_TEST

/// The control of the refusals below: the same words from the right mouth are answered.
START_TEST(a_true_greeting_is_answered) {
  const auto leader = open_leader();
  const pid_t child = in_child([&] {
    const UniqueFd socket = connect_to(leader->ticket());
    return greet(socket.get(), leader->ticket(), 1) && !gets_nothing(socket.get());
  });
  Offers offers;
  ck_assert(leader->serve(2, offer_of(0), within(20), offers).ok());
  ck_assert(offers[1].present);
  ck_assert_uint_eq(offers[1].size, 1001);
  ck_assert(ended_well(child));
}
END_TEST

/// It knows name, secret and number: the uid alone gives it away.
START_TEST(another_user_gets_nothing) {
  if (::geteuid() != 0) {
    std::printf("another_user_gets_nothing: skipped, it takes root to become another user\n");
    return;
  }
  const auto leader = open_leader();
  const ExchangeTicket ticket = leader->ticket();
  const pid_t stranger = in_child([&] {
    if (::setuid(kOtherUser) != 0) return false;
    const UniqueFd socket = connect_to(ticket);
    (void)greet(socket.get(), ticket, 1);
    return gets_nothing(socket.get());
  });
  ck_assert(serves_nobody(*leader));
  ck_assert(ended_well(stranger));

  // The same stranger by the library's own call: it does not even send the secret to somebody else.
  const pid_t honest = in_child([&] {
    if (::setuid(kOtherUser) != 0) return false;
    Offers none;
    const Status status = exchange_with_leader(ticket, 1, 2, offer_of(1), within(20), none);
    return status.code() == Code::kRemote &&
           status.message().find("another user") != std::string::npos;
  });
  ck_assert(ended_well(honest));
}
END_TEST

START_TEST(a_wrong_secret_gets_nothing) {
  Greeting greeting;
  greeting.secret.fill(0xa5);
  refuse(greeting, sizeof greeting, 0);
}
END_TEST

START_TEST(one_wrong_bit_of_the_secret_gets_nothing) {
  const auto leader = open_leader();
  for (const std::size_t byte : {0u, 7u, 15u}) {
    ExchangeTicket wrong = leader->ticket();
    wrong.secret[byte] ^= 1;
    const int before = leader->refused();
    const pid_t child = in_child([&] {
      Offers offers;
      return exchange_with_leader(wrong, 1, 2, offer_of(1), within(20), offers).code() ==
             Code::kRemote;
    });
    ck_assert(serves_nobody(*leader, before));
    ck_assert(ended_well(child));
  }
}
END_TEST

START_TEST(wrong_shapes_get_nothing) {
  struct Shape {
    std::size_t size;
    int descriptors;
    std::uint32_t has_descriptor;
    std::uint32_t magic;
  };
  const std::uint32_t magic = Greeting().magic;
  const Shape shapes[] = {{sizeof(Greeting) - 1, 0, 0, magic}, {1, 0, 0, magic},
                          {sizeof(Greeting), 2, 1, magic},     {sizeof(Greeting), 1, 0, magic},
                          {sizeof(Greeting), 0, 1, magic},     {sizeof(Greeting), 0, 0, magic + 1}};
  for (const Shape& shape : shapes) {
    const auto leader = open_leader();
    const int before = open_descriptors();
    const pid_t stranger = in_child([&] {
      const UniqueFd socket = connect_to(leader->ticket());
      Greeting greeting = true_greeting(leader->ticket(), 1);
      greeting.magic = shape.magic;
      greeting.has_descriptor = shape.has_descriptor;
      return say(socket.get(), &greeting, shape.size, shape.descriptors) &&
             gets_nothing(socket.get());
    });
    ck_assert(serves_nobody(*leader));
    ck_assert(ended_well(stranger));
    ck_assert_int_eq(open_descriptors(), before);  // what a stranger sent does not stay
  }
}
END_TEST

START_TEST(a_number_out_of_range_gets_nothing) {
  for (const int member : {-1, 0, 2, 1 << 20}) {
    const auto leader = open_leader();
    const pid_t stranger = in_child([&] {
      const UniqueFd socket = connect_to(leader->ticket());
      return greet(socket.get(), leader->ticket(), member) && gets_nothing(socket.get());
    });
    ck_assert(serves_nobody(*leader));
    ck_assert(ended_well(stranger));
  }
}
END_TEST

START_TEST(a_number_is_taken_once) {
  const auto leader = open_leader();
  // The first 1 is served; the second one is not, although it knows everything.
  const UniqueFd first = connect_to(leader->ticket());
  const UniqueFd second = connect_to(leader->ticket());
  Greeting greeting = true_greeting(leader->ticket(), 1);
  ck_assert(say(first.get(), &greeting, sizeof greeting, 0));
  greeting.size = 77;
  ck_assert(say(second.get(), &greeting, sizeof greeting, 0));
  Offers offers;
  ExchangeLimits limits = within(20);
  limits.hopeless = [&] { return leader->refused() > 0; };
  ck_assert(leader->serve(3, offer_of(0), limits, offers).code() == Code::kRemote);
  ck_assert_uint_eq(offers[1].size, 1001);
  ck_assert(gets_nothing(second.get()));
}
END_TEST

START_TEST(silent_connections_hold_nobody_up) {
  const auto leader = open_leader();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 5; ++i) silent.push_back(connect_to(leader->ticket()));
  std::vector<pid_t> children;
  for (int m = 1; m < 4; ++m) children.push_back(start_member(leader->ticket(), m, 4));
  Offers offers;
  ck_assert(leader->serve(4, offer_of(0), within(20), offers).ok());
  ck_assert(are_complete(offers, 4));
  for (const pid_t child : children) ck_assert(ended_well(child));
  for (const UniqueFd& socket : silent) ck_assert(gets_nothing(socket.get()));
}
END_TEST

START_TEST(a_member_that_never_comes_ends_the_wait) {
  const auto leader = open_leader();
  Offers offers;
  const Status status = leader->serve(3, offer_of(0), within(0.3), offers);
  ck_assert(status.code() == Code::kTimeout);
  ck_assert_msg(status.message().find("2 of 3") != std::string::npos, "%s",
                status.message().c_str());
}
END_TEST

START_TEST(a_leader_that_never_answers_ends_the_wait) {
  const auto leader = open_leader();
  Offers offers;
  const Status status =
      exchange_with_leader(leader->ticket(), 1, 2, offer_of(1), within(0.3), offers);
  ck_assert(status.code() == Code::kTimeout);
}
END_TEST

START_TEST(a_dead_member_ends_the_wait_of_all) {
  const auto leader = open_leader();
  const pid_t dead = in_child([] { return true; });
  ck_assert(ended_well(dead));
  const pid_t member = in_child([&] {
    ExchangeLimits limits = within(20);
    limits.hopeless = [] { return true; };
    Offers offers;
    return exchange_with_leader(leader->ticket(), 1, 3, offer_of(1), limits, offers).code() ==
           Code::kRemote;
  });
  Offers offers;
  ExchangeLimits limits = within(20);
  limits.hopeless = [] { return true; };
  ck_assert(leader->serve(3, offer_of(0), limits, offers).code() == Code::kRemote);
  ck_assert(ended_well(member));
}
END_TEST

START_TEST(a_member_that_dies_after_its_greeting_leaves_the_others_alone) {
  const auto leader = open_leader();
  const pid_t dying = in_child([&] {
    const UniqueFd socket = connect_to(leader->ticket());
    return greet(socket.get(), leader->ticket(), 1);
  });
  ck_assert(ended_well(dying));
  const pid_t other = in_child([&] {
    Offers offers;
    const Status status =
        exchange_with_leader(leader->ticket(), 2, 3, offer_of(2), within(20), offers);
    return status.ok() && is_offer_of(offers[0], 0) && is_offer_of(offers[2], 2);
  });
  Offers offers;
  ck_assert(leader->serve(3, offer_of(0), within(20), offers).ok());
  ck_assert(ended_well(other));
}
END_TEST

START_TEST(a_leader_that_dies_ends_the_wait) {
  auto leader = open_leader();
  const ExchangeTicket ticket = leader->ticket();
  int sign[2];
  ck_assert(::pipe(sign) == 0);
  const pid_t member = in_child([&] {
    leader.reset();  // its copy of the listener would keep the socket alive
    const bool told = ::write(sign[1], "x", 1) == 1;
    Offers offers;
    const Status status = exchange_with_leader(ticket, 1, 2, offer_of(1), within(20), offers);
    return told && (status.code() == Code::kRemote || status.code() == Code::kSystem);
  });
  char byte = 0;
  ck_assert(::read(sign[0], &byte, 1) == 1);
  leader.reset();
  ck_assert(ended_well(member));
}
END_TEST

START_TEST(absent_members_are_not_waited_for) {
  const auto leader = open_leader();
  const pid_t child = in_child([&] {
    Offers offers;
    const Status status =
        exchange_with_leader(leader->ticket(), 1, 3, offer_of(1), within(20), offers);
    return status.ok() && is_offer_of(offers[0], 0) && !offers[2].present;
  });
  Offers offers;
  ExchangeLimits limits = within(20);
  limits.absent = [](int member) { return member == 2; };
  ck_assert(leader->serve(3, offer_of(0), limits, offers).ok());
  ck_assert(is_offer_of(offers[1], 1));
  ck_assert(!offers[2].present && !offers[2].fd.valid());
  ck_assert(ended_well(child));
}
END_TEST

START_TEST(tickets_do_not_repeat) {
  const auto a = open_leader();
  const auto b = open_leader();
  ck_assert(a->ticket().name != b->ticket().name);
  ck_assert(a->ticket().secret != b->ticket().secret);
}
END_TEST

}  // namespace

int main() {
  return gimlet::tests::run_suite("descriptor exchange",
                                  {two_members,
                                   three_members,
                                   hundred_and_thirty_five_members,
                                   an_ordinary_user_can_have_many_members,
                                   one_member_alone,
                                   members_may_offer_nothing,
                                   a_true_greeting_is_answered,
                                   another_user_gets_nothing,
                                   a_wrong_secret_gets_nothing,
                                   one_wrong_bit_of_the_secret_gets_nothing,
                                   wrong_shapes_get_nothing,
                                   a_number_out_of_range_gets_nothing,
                                   a_number_is_taken_once,
                                   silent_connections_hold_nobody_up,
                                   a_member_that_never_comes_ends_the_wait,
                                   a_leader_that_never_answers_ends_the_wait,
                                   a_dead_member_ends_the_wait_of_all,
                                   a_member_that_dies_after_its_greeting_leaves_the_others_alone,
                                   a_leader_that_dies_ends_the_wait,
                                   absent_members_are_not_waited_for,
                                   tickets_do_not_repeat});
}
