// SPDX-License-Identifier: BSD-3-Clause
// oshrun: launches the PEs of a job on this host, with a PMIx server of its own.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "binding.h"
#include "handover.h"
#include "job.h"
#include "launch_error.h"
#include "options.h"
#include "server.h"
#include "session.h"
#include "signals.h"
#include "starter.h"
#include "upcall_queue.h"

namespace gimlet::oshrun {
namespace {

// A descriptor below 3 that is closed would be given to the next pipe, and then be taken for a
// standard stream.
void open_standard_streams() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd < 3) fd = open("/dev/null", O_RDWR);
  if (fd >= 3) close(fd);
}

// Each PE costs the launcher two pipes and the connection of its PMIx client. Without the latter
// the client would wait for ever, so a limit that is too low is found before the first start.
void raise_open_files_limit(int pes) {
  constexpr rlim_t kPerPe = 3;
  constexpr rlim_t kOwn = 40;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t needed = static_cast<rlim_t>(pes) * kPerPe + kOwn;
  if (limit.rlim_max < needed) {
    fail(kExitLauncher, "{} PEs need {} open files and the limit (ulimit -H -n) is {}", pes, needed,
         limit.rlim_max);
  }
}

void settle_counts(Options& options, const Topology& topology) {
  if (options.apps.size() == 1) {
    AppContext& app = options.apps.front();
    if (!app.pes) app.pes = topology.allowed_cores();
  }
  int total = 0;
  for (const AppContext& app : options.apps) {
    if (!app.pes) fail(kExitUsage, "each program of a `:` list needs its own -n");
    total += *app.pes;
    if (total > kMaxPes) fail(kExitUsage, "more than {} PEs in all", kMaxPes);
  }
  if (options.gdb_pe && *options.gdb_pe >= total) {
    fail(kExitUsage, "--gdb wants a PE from 0 to {} , not {}", total - 1, *options.gdb_pe);
  }
}

JobShape shape_of(const Options& options) {
  JobShape shape;
  for (const AppContext& app : options.apps) shape.app_sizes.push_back(app.pes.value_or(0));
  return shape;
}

int launch(Options& options) {
  forget_outer_launcher();
  const Topology topology;
  settle_counts(options, topology);
  const JobShape shape = shape_of(options);
  const std::vector<Placement> placements = topology.place(options.bind, shape.pes());
  const Starter starter(options, Environment::inherited(), placements);
  starter.prepare_output();

  Session session(shape.pes());
  Signals signals;
  raise_open_files_limit(shape.pes());
  signals.block();
  PmixServer server(session.directory(), topology.handle());
  // Until the first PE exists a signal may simply end the launcher; the janitor does the rest.
  signals.unblock();
  UpcallQueue upcalls;
  server.register_job(shape, upcalls);
  signals.block();

  Job job(options, starter, session, signals, server, upcalls);
  if (options.report_bindings) {
    for (std::size_t pe = 0; pe < placements.size(); ++pe) {
      job.say(fmt::format("PE {} {}", pe, placements[pe].text));
    }
  }
  const int exit_code = job.run();
  session.close();
  // Not by return: libpmix's threads still run, and nothing that they use may be destroyed.
  _exit(exit_code);
}

int run(int argc, char** argv) {
  open_standard_streams();
  std::optional<Options> options = parse_options(argc, argv);
  if (!options) return 0;
  if (wants_handover(*options)) hand_over(*options);
  return launch(*options);
}

}  // namespace
}  // namespace gimlet::oshrun

int main(int argc, char** argv) {
  using namespace gimlet::oshrun;
  int exit_code = kExitLauncher;
  try {
    exit_code = run(argc, argv);
  } catch (const LaunchError& error) {
    fmt::print(stderr, "oshrun: {}\n", error.what());
    exit_code = error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "oshrun: {}\n", error.what());
  }
  fflush(nullptr);
  _exit(exit_code);
}
