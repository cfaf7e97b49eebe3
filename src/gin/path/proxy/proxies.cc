// SPDX-License-Identifier: BSD-3-Clause
#include "gin/path/proxy/proxies.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/clock.h"
#include "device/log.h"
#include "gin/path/proxy/error_note.h"

namespace gimlet::gin {

Proxies::Proxies(Proxy::Setup setup, std::unique_ptr<RingMemory> memory) {
  const auto contexts = static_cast<std::uint32_t>(memory->rings().size());
  const auto threads = static_cast<std::uint32_t>(setup.carriers.size());
  common_.setup = std::move(setup);
  common_.memory = std::move(memory);
  common_.placement = device::place_nearby();
  common_.contexts_each = (contexts + threads - 1) / threads;
  for (std::uint32_t t = 0; t * common_.contexts_each < contexts; ++t)
    proxies_.push_back(std::make_unique<Proxy>(common_, t));
}

Status Proxies::open(Proxy::Setup setup, std::unique_ptr<RingMemory> memory,
                     std::unique_ptr<Proxies>& out) {
  std::unique_ptr<Proxies> made(new Proxies(std::move(setup), std::move(memory)));
  const std::span<std::byte> signals = made->memory().signals();
  Proxy& first = *made->proxies_.front();
  GIMLET_TRY(first.carrier().add_segment(signals.data(), signals.size(), made->address_.signals));
  made->has_segment_ = true;
  for (auto& proxy : made->proxies_) GIMLET_TRY(made->listen(*proxy));
  made->address_.listener = first.listener().value();
  out = std::move(made);
  return {};
}

Status Proxies::listen(Proxy& proxy) {
  pgas::Carrier::Listener listener;
  listener.refused = [this](const pgas::Refusal& refusal) { hear_refusal(refusal); };
  listener.noted = [this](int, std::span<const std::byte> note) { hear_note(note); };
  pgas::ListenerNumber number = 0;
  GIMLET_TRY(proxy.carrier().add_listener(std::move(listener), number));
  proxy.set_listener(number);
  return {};
}

Proxies::~Proxies() {
  stop(0);
  detach();
}

void Proxies::ignore_refusals() {
  for (auto& proxy : proxies_) {
    if (!proxy->listener()) continue;
    proxy->carrier().remove_listener(*proxy->listener());
    proxy->set_listener(std::nullopt);
  }
}

void Proxies::detach() {
  ignore_refusals();
  if (!std::exchange(has_segment_, false)) return;
  proxies_.front()->carrier().remove_segment(address_.signals);
}

Status Proxies::start(std::vector<Proxy::Address> peers) {
  common_.peers = std::move(peers);
  common_.is_started.store(true, std::memory_order_release);
  for (auto& proxy : proxies_) GIMLET_TRY(proxy->start());
  const bool shares = CPU_COUNT(&common_.placement.cpus) == 1;
  log::debug("{} proxy thread{} of a device communicator run{} on {}{}", proxies_.size(),
             proxies_.size() == 1 ? "" : "s", proxies_.size() == 1 ? "s" : "",
             device::describe(common_.placement),
             shares ? ", like all threads of this process" : "");
  return {};
}

bool Proxies::stop(double seconds) {
  common_.stopping.store(true, std::memory_order_release);
  wake();
  const std::uint64_t limit = device::now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
  const auto runs = [](const auto& proxy) { return proxy->is_running(); };
  while (std::ranges::any_of(proxies_, runs) && device::now_ns() < limit) {
    const timespec nap = {0, 50'000};
    ::nanosleep(&nap, nullptr);
  }
  common_.abandoned.store(true, std::memory_order_release);
  bool over = true;
  for (auto& proxy : proxies_) over &= proxy->join();
  common_.tell_heard();
  // This object stays for the sake of those requests; what it reports to may go.
  if (!over) ignore_refusals();
  return over;
}

void Proxies::wake() {
  for (auto& proxy : proxies_) proxy->wake();
}

EngineCounts Proxies::counts() const {
  EngineCounts sum;
  for (const auto& proxy : proxies_) sum += proxy->counters().read();
  return sum;
}

void Proxies::hear_note(std::span<const std::byte> bytes) {
  ErrorNote note{};
  if (bytes.size() < sizeof note || !common_.is_started.load(std::memory_order_acquire)) return;
  std::memcpy(&note, bytes.data(), sizeof note);
  ErrorRecord record;
  record.code = ginRemoteError;
  record.rank = note.rank;
  record.peer = note.peer;
  record.operation = static_cast<ginOperation>(note.operation);
  record.offset = note.offset;
  hear({record});
}

/// On any thread.
void Proxies::hear_refusal(const pgas::Refusal& refusal) {
  if (!common_.is_started.load(std::memory_order_acquire)) return;
  const bool is_inside =
      refusal.bytes <= refusal.size && refusal.offset <= refusal.size - refusal.bytes;
  ginFault fault{};
  fault.peer = refusal.rank;
  fault.operation = refusal.kind == pgas::CarriedRequest::Kind::kGet   ? ginOpGet
                    : refusal.kind == pgas::CarriedRequest::Kind::kAmo ? ginOpAtomic
                    : refusal.is_signal                                ? ginOpSignal
                                                                       : ginOpPut;
  fault.reason = refusal.size == 0 ? ginFaultWindow : is_inside ? ginFaultAlignment : ginFaultRange;
  fault.value = static_cast<std::int64_t>(refusal.offset);
  fault.bytes = refusal.bytes;
  fault.allowed = refusal.size;
  ErrorRecord record;
  record.code = ginInvalidArgument;
  record.rank = common_.setup.rank;
  record.peer = fault.peer;
  record.operation = static_cast<ginOperation>(fault.operation);
  record.offset = refusal.offset;
  hear({record, true, fault});
}

void Proxies::hear(const HeardError::Error& error) {
  common_.heard.leave(error);
  proxies_.front()->wake();
}

}  // namespace gimlet::gin
