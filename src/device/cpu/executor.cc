// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/executor.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "device/backoff.h"
#include "device/clock.h"
#include "device/cores.h"
#include "device/cpu/hooks.h"
#include "device/cpu/stack_fault.h"
#include "device/log.h"
#include "device/settings.h"
#include "gin/result.h"

namespace gimlet::device {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);
constexpr std::uint64_t kExitNs = 1'000'000'000;
constexpr std::uint64_t kMostWorkers = 1024;
constexpr std::size_t kReserveWorkers = 64;
constexpr std::uint64_t kMostBlocks = (std::uint64_t{1} << 31) - 1;

std::atomic<Executor*> the_executor{nullptr};

/// System threads that are made meanwhile take no signals that are meant for the program's own;
/// those that a kernel itself raises still arrive.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF})
      ::sigdelset(&blocked, own);
    ::pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// The default stream of a host thread; its launches outlive the thread.
class DefaultStream {
 public:
  DefaultStream() = default;
  DefaultStream(const DefaultStream&) = delete;
  DefaultStream& operator=(const DefaultStream&) = delete;
  ~DefaultStream() {
    if (Executor* const executor = stream_ == nullptr ? nullptr : Executor::instance())
      (void)executor->destroy_stream(stream_);
  }
  Stream* get(Executor& executor, int device) {
    if (stream_ != nullptr && stream_->device != device) {
      (void)executor.destroy_stream(stream_);
      stream_ = nullptr;
    }
    if (stream_ == nullptr) stream_ = executor.create_stream(device);
    return stream_;
  }

 private:
  Stream* stream_ = nullptr;
};

thread_local DefaultStream default_stream;

std::size_t size_class(unsigned threads) {
  return static_cast<std::size_t>(std::bit_width((threads - 1) / kWarpSize));
}

std::size_t wanted_workers() {
  if (const std::uint64_t set = settings().executor_workers)
    return static_cast<std::size_t>(std::min(set, kMostWorkers));
  return static_cast<std::size_t>(std::max(1, allowed_cores() / std::max(1, local_pes())));
}

}  // namespace

Executor* Executor::instance() {
  // Never destroyed: a thread that holds a worker for ever still refers to it at exit.
  static Executor* const executor = new Executor;
  return executor->pid_ == ::getpid() ? executor : nullptr;
}

Executor* Executor::existing() {
  // Acquire takes the store at the end of the constructor.
  return the_executor.load(std::memory_order_acquire);
}

Executor::Executor()
    : fibers_(settings().executor == "fibers"),
      pid_(::getpid()),
      stacks_(settings().stack_size),
      monitor_(*this) {
  const SignalsBlocked blocked;
  if (fibers_) {
    report_stack_faults();
    const std::lock_guard lock(mutex_);
    for (std::size_t i = wanted_workers(); i > 0 && add_worker(false) != nullptr; --i)
      ++base_workers_;
  }
  if (fibers_ && base_workers_ == 0) throw std::runtime_error("the system has no thread for it");
  monitor_.start();
  set_fiber_yield(yield_device_thread);
  the_executor.store(this, std::memory_order_release);
  std::atexit([] { existing()->stop(); });
}

/// At exit: kernels that still run are cut short where they hand over next.
void Executor::stop() {
  if (pid_ != ::getpid()) return;
  monitor_.stop();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (Launch* const launch : active_) {
      launch->failed.store(true, std::memory_order_relaxed);
      if (launch->thread_run != nullptr) launch->thread_run->wake_all();
    }
  }
  const std::uint64_t until = now_ns() + kExitNs;
  for (Worker* const worker : workers()) worker->stop();
  for (Worker* const worker : workers()) worker->join(until);
  std::unique_lock lock(mutex_);
  while (threads_in_use_ != 0 && now_ns() < until)
    ended_.wait_for(lock, std::chrono::milliseconds(10));
}

/// Null if the system has no thread for it.
Worker* Executor::add_worker(bool reserve) {
  auto worker = std::make_unique<Worker>(*this, reserve);
  try {
    worker->start();
  } catch (const std::system_error& error) {
    log::warning("no system thread for a worker of the executor: {}", error.what());
    return nullptr;
  }
  workers_.push_back(std::move(worker));
  return workers_.back().get();
}

std::vector<Worker*> Executor::workers() {
  const std::lock_guard lock(mutex_);
  std::vector<Worker*> all;
  for (const auto& worker : workers_) all.push_back(worker.get());
  return all;
}

bool Executor::has_launches() {
  const std::lock_guard lock(mutex_);
  return !active_.empty();
}

void Executor::wake_workers() {
  for (Worker* const worker : workers())
    if (!worker->is_reserve()) worker->wake();
}

void Executor::wake_sleepers() {
  // A worker that counts itself only now has looked before this call's change, and looks again at
  // the latest when its nap ends.
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  for (Worker* const worker : workers()) worker->wake();
}

// ---- streams

Stream* Executor::create_stream(int device) {
  auto stream = std::make_unique<Stream>(device);
  const std::lock_guard lock(mutex_);
  streams_.insert(stream.get());
  return stream.release();
}

Status Executor::destroy_stream(Stream* stream) {
  const std::lock_guard lock(mutex_);
  if (streams_.count(stream) == 0 || stream->destroyed)
    return fail(Code::kInvalidArgument, "{} is not a stream", fmt::ptr(stream));
  stream->destroyed = true;
  if (!stream->queue.empty()) return {};
  streams_.erase(stream);
  delete stream;
  return {};
}

/// With mutex_ held: the stream that a caller means, or nullptr if it is none.
Stream* Executor::resolve(Stream* stream) {
  return streams_.count(stream) != 0 && !stream->destroyed ? stream : nullptr;
}

Status Executor::synchronize(Stream* stream, int& error) {
  if (stream == nullptr) stream = default_stream.get(*this, current_device());
  std::unique_lock lock(mutex_);
  if (resolve(stream) == nullptr)
    return fail(Code::kInvalidArgument, "{} is not a stream", fmt::ptr(stream));
  ended_.wait(lock, [stream] { return stream->queue.empty(); });
  error = std::exchange(stream->error, 0);
  return {};
}

void Executor::synchronize_device(int device, int& error) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] {
    return std::none_of(streams_.begin(), streams_.end(), [device](const Stream* stream) {
      return stream->device == device && !stream->queue.empty();
    });
  });
  for (Stream* const stream : streams_) {
    if (stream->device != device) continue;
    const int own = std::exchange(stream->error, 0);
    if (error == 0) error = own;
  }
}

// ---- launches

Status Executor::check(const gin_exec_launch_config& config, const char* name) const {
  const gin_exec_dim& grid = config.grid;
  const gin_exec_dim& block = config.block;
  const auto refuse = [&](const char* what, const std::string& value, const std::string& allowed) {
    return fail(Code::kInvalidArgument, "launch of kernel {}: {} is {}; allowed is {}", name, what,
                value, allowed);
  };
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > kMostBlocks || grid.y > 65535 ||
      grid.z > 65535) {
    return refuse("the grid", text(grid), "1 to 2147483647 blocks in x, 1 to 65535 in y and z");
  }
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > kMaxBlockThreads ||
      block.y > kMaxBlockThreads || block.z > 64 || threads > kMaxBlockThreads) {
    return refuse("the block", text(block), "1 to 1024 threads, at most 64 of them in z");
  }
  if (config.shared_bytes > SharedArena::kDynamicBytes) {
    return refuse("shared_bytes", std::to_string(config.shared_bytes),
                  "0 to " + std::to_string(SharedArena::kDynamicBytes));
  }
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  if (!fibers_ && blocks * threads > kAllThreads) {
    return refuse("the number of threads", fmt::format("{} blocks of {}", blocks, threads),
                  fmt::format("{} in all while GIN_EXECUTOR is threads", kAllThreads));
  }
  if (config.cooperative != 0 && (blocks * threads > kLaunchFibers || blocks > kLaunchBlocks)) {
    return refuse("the cooperative grid", fmt::format("{} blocks of {} threads", blocks, threads),
                  fmt::format("what runs at the same time, {} blocks and {} threads", kLaunchBlocks,
                              kLaunchFibers));
  }
  return {};
}

Status Executor::launch(const gin_exec_launch_config& config, const gin_exec_kernel& kernel) {
  auto launch = std::make_unique<Launch>(config, kernel);
  GIMLET_TRY(check(config, kernel.name));
  auto* stream = reinterpret_cast<Stream*>(config.stream);
  if (stream == nullptr) stream = default_stream.get(*this, current_device());
  Launches ended;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return fail(Code::kInvalidUsage, "launch of kernel {} at exit", kernel.name);
    if (resolve(stream) == nullptr) {
      return fail(Code::kInvalidArgument, "launch of kernel {}: {} is not a stream", kernel.name,
                  fmt::ptr(stream));
    }
    launch->stream = stream;
    stream->queue.push_back(launch.release());
    if (stream->queue.size() == 1) activate_front(*stream, ended);
  }
  wake_workers();
  monitor_.wake();
  return {};
}

/// Starts the first launch of the stream; those behind an error end instead. Their arguments are
/// the user's, so the caller destroys `ended` without the lock.
void Executor::activate_front(Stream& stream, Launches& ended) {
  while (!stream.queue.empty()) {
    Launch* const launch = stream.queue.front();
    if (stream.error == 0 && activate(*launch)) return;
    if (stream.error == 0) stream.error = launch->result.load(std::memory_order_relaxed);
    stream.queue.pop_front();
    ended.emplace_back(launch);
  }
  if (stream.destroyed) {
    streams_.erase(&stream);
    delete &stream;
  }
}

/// False: it has failed at once.
bool Executor::activate(Launch& launch) {
  if (fibers_) {
    active_.push_back(&launch);
    startable_.fetch_add(launch.blocks(), std::memory_order_relaxed);
    return true;
  }
  try {
    const SignalsBlocked blocked;
    std::thread([this, &launch] { run_in_threads(launch); }).detach();
  } catch (const std::system_error& error) {
    launch.fail(ginSystemError,
                fmt::format("no system thread for kernel {}: {}", launch.name(), error.what()));
    return false;
  }
  active_.push_back(&launch);
  return true;
}

/// With mutex_ held, once no thread of the launch is left.
void Executor::complete(Launch& launch, Launches& ended) {
  active_.erase(std::find(active_.begin(), active_.end(), &launch));
  Stream& stream = *launch.stream;
  if (stream.error == 0) stream.error = launch.result.load(std::memory_order_relaxed);
  stream.queue.pop_front();
  ended.emplace_back(&launch);
  activate_front(stream, ended);
}

// ---- blocks

std::size_t Executor::fair_share() const {
  const std::uint64_t all =
      startable_.load(std::memory_order_relaxed) + resident_.load(std::memory_order_relaxed);
  return static_cast<std::size_t>((all + base_workers_ - 1) / base_workers_);
}

bool Executor::has_room(const Launch& launch) const {
  if (launch.resident_blocks >= kLaunchBlocks) return false;
  const std::uint64_t threads = launch.threads();
  return (launch.resident_blocks + 1) * threads <= kLaunchFibers &&
         resident_fibers_ + threads <= kAllFibers;
}

FiberBlock& Executor::idle_block(unsigned threads) {
  const std::size_t size = size_class(threads);
  std::vector<FiberBlock*>& idle = idle_blocks_[size];
  if (idle.empty()) {
    blocks_.push_back(std::make_unique<FiberBlock>(stacks_, kWarpSize << size));
    idle.push_back(blocks_.back().get());
  }
  FiberBlock& block = *idle.back();
  idle.pop_back();
  return block;
}

FiberBlock* Executor::start_block() {
  FiberBlock* block = nullptr;
  Launch* launch = nullptr;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    // The launches take turns, so that a large grid does not keep one out that it waits for.
    for (std::size_t i = 0; i < active_.size() && launch == nullptr; ++i) {
      Launch* const candidate = active_.front();
      active_.pop_front();
      active_.push_back(candidate);
      if (candidate->next_block < candidate->blocks() && has_room(*candidate)) launch = candidate;
    }
    if (launch == nullptr) return nullptr;
    number = launch->next_block++;
    ++launch->resident_blocks;
    resident_fibers_ += launch->threads();
    startable_.fetch_sub(1, std::memory_order_relaxed);
    resident_.fetch_add(1, std::memory_order_relaxed);
    block = &idle_block(launch->threads());
  }
  if (!block->start(*launch, number)) {
    launch->fail(ginSystemError,
                 fmt::format("no memory for the shared memory of kernel {}", launch->name()));
    block_ended(*block);
    return nullptr;
  }
  return block;
}

/// A failed launch starts no more blocks.
void Executor::drop_unstarted(Launch& launch) {
  startable_.fetch_sub(launch.blocks() - launch.next_block, std::memory_order_relaxed);
  launch.next_block = launch.blocks();
}

void Executor::block_ended(FiberBlock& block) {
  Launch& launch = *block.launch;
  const std::size_t size = size_class(launch.threads());
  block.finish();
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    idle_blocks_[size].push_back(&block);
    if (launch.has_failed()) drop_unstarted(launch);
    resident_fibers_ -= launch.threads();
    resident_.fetch_sub(1, std::memory_order_relaxed);
    --launch.resident_blocks;
    last = launch.resident_blocks == 0 && launch.next_block == launch.blocks();
  }
  if (!last) return;
  launch.destroy_args();  // before anybody hears that the launch is complete
  Launches ended;
  {
    const std::lock_guard lock(mutex_);
    complete(launch, ended);
  }
  ended_.notify_all();
  if (has_startable()) wake_workers();
}

std::vector<FiberBlock*> Executor::blocks_to_steal(const Worker& thief) {
  Worker* busiest = nullptr;
  std::size_t most = 1;
  for (Worker* const worker : workers()) {
    const std::size_t load = worker == &thief ? 0 : worker->load();
    if (load > most) {
      most = load;
      busiest = worker;
    }
  }
  return busiest == nullptr ? std::vector<FiberBlock*>() : busiest->give_up(true);
}

void Executor::relieve(Worker& held, bool nobody_is_free) {
  Worker* free = nullptr;
  const std::vector<Worker*> all = workers();
  for (Worker* const worker : all)
    if (worker != &held && worker->is_idle() && (free == nullptr || !worker->is_reserve()))
      free = worker;
  if (free == nullptr) {
    if (!may_grow_ || all.size() >= base_workers_ + kReserveWorkers) return;
    const SignalsBlocked blocked;
    const std::lock_guard lock(mutex_);
    free = add_worker(true);
    may_grow_ = free != nullptr;
    if (!may_grow_) return;
  }
  free->adopt(held.give_up(false));
  if (nobody_is_free) free->activate();
}

// ---- every device thread a system thread

void Executor::run_in_threads(Launch& launch) {
  const auto wanted = static_cast<unsigned>(launch.blocks() * launch.threads());
  {
    std::unique_lock lock(mutex_);
    const auto is_free = [&] { return threads_in_use_ + wanted <= kAllThreads; };
    if (!ended_.wait_for(lock, kPatience, is_free)) {
      log::warning("kernel {} has waited {} s for {} system threads: other kernels use {} of {}",
                   launch.name(), kPatience.count(), wanted, threads_in_use_, kAllThreads);
      ended_.wait(lock, is_free);
    }
    threads_in_use_ += wanted;
  }
  {
    ThreadRun run(launch);
    {
      const std::lock_guard lock(mutex_);
      launch.thread_run = &run;
    }
    run.run();
    const std::lock_guard lock(mutex_);
    launch.thread_run = nullptr;
  }
  launch.destroy_args();
  Launches ended;
  {
    const std::lock_guard lock(mutex_);
    threads_in_use_ -= wanted;
    complete(launch, ended);
  }
  ended_.notify_all();
}

void Executor::visit_thread_blocks(const std::function<void(ThreadBlock&)>& see) {
  const std::lock_guard lock(mutex_);
  for (Launch* const launch : active_)
    if (launch->thread_run != nullptr) launch->thread_run->visit(see);
}

}  // namespace gimlet::device
