// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/block.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <exception>

#include "device/cpu/thread_run.h"
#include "device/log.h"
#include "gin/result.h"

namespace gimlet::device {

Launch::Launch(const gin_exec_launch_config& launch_config, const gin_exec_kernel& launch_kernel)
    : config(launch_config), kernel(launch_kernel), kernel_name(launch_kernel.name) {}

gin_exec_dim Launch::block_index(std::uint64_t number) const {
  const std::uint64_t plane = std::uint64_t{config.grid.x} * config.grid.y;
  return {static_cast<unsigned>(number % config.grid.x),
          static_cast<unsigned>(number % plane / config.grid.x),
          static_cast<unsigned>(number / plane)};
}

void Launch::fail(int error, std::string_view sentence) {
  int none = 0;
  if (!result.compare_exchange_strong(none, error, std::memory_order_relaxed)) return;
  if (!sentence.empty()) log::error("{}", sentence);
  failed.store(true, std::memory_order_relaxed);
  if (thread_run != nullptr) thread_run->wake_all();
}

void Launch::destroy_args() {
  if (kernel.destroy != nullptr) kernel.destroy(kernel.args);
  kernel.destroy = nullptr;
}

void identify(DeviceThread& thread, Block& block, unsigned rank) {
  const gin_exec_launch_config& config = block.launch->config;
  const unsigned row = rank / config.block.x;
  thread.info.thread = {rank % config.block.x, row % config.block.y, row / config.block.y};
  thread.info.block = block.index;
  thread.info.block_dim = config.block;
  thread.info.grid_dim = config.grid;
  thread.info.rank = rank;
  thread.info.size = block.launch->threads();
  thread.info.kernel = block.launch->kernel_name.c_str();
  thread.block = &block;
  thread.rank = rank;
  thread.wait.set(&thread, 0);  // nothing that a kernel waits for
  thread.look.set(&thread, 0);
  thread.operations = thread.fruitless = 0;
  thread.note.clear();
}

std::string where(const DeviceThread& thread) {
  return fmt::format("thread {} of block {} of kernel {}", text(thread.info.thread),
                     text(thread.info.block), thread.info.kernel);
}

void run_kernel(DeviceThread& thread) {
  Launch& launch = *thread.block->launch;
  try {
    launch.kernel.call(launch.kernel.args);
  } catch (const abi::__forced_unwind&) {
    throw;  // pthread_cancel, not an error of the kernel
  } catch (const std::exception& error) {
    launch.fail(ginUnhandledCudaError,
                fmt::format("an exception left {}: {}", where(thread), error.what()));
  } catch (...) {
    launch.fail(ginUnhandledCudaError,
                fmt::format("an exception that is no std::exception left {}", where(thread)));
  }
}

void fail_stuck(Block& block) {
  block.launch->fail(ginUnhandledCudaError,
                     fmt::format("block {} of kernel {} can't go on, all its threads wait for each "
                                 "other: {}",
                                 text(block.index), block.launch->name(), block.sync.describe()));
}

}  // namespace gimlet::device
