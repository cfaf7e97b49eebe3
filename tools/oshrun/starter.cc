// SPDX-License-Identifier: BSD-3-Clause
#include "starter.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "launch_error.h"
#include "program.h"

namespace gimlet::oshrun {
namespace {

// The launcher's end and the PE's end of one stream.
struct Channel {
  UniqueFd launcher;
  UniqueFd pe;
};

struct PipeEnds {
  UniqueFd read;
  UniqueFd write;
};

PipeEnds make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(kExitLauncher, "cannot make a pipe: {}", errno_text());
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

UniqueFd open_or_fail(const std::string& path, int flags) {
  UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!fd.valid()) fail(kExitLauncher, "cannot open {} : {}", path, errno_text());
  return fd;
}

// A terminal of the same size as the launcher's, that passes bytes on unchanged.
std::optional<Channel> make_terminal() {
  UniqueFd master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[64];
  if (!master.valid() || grantpt(master.get()) != 0 || unlockpt(master.get()) != 0 ||
      ptsname_r(master.get(), name, sizeof name) != 0) {
    return std::nullopt;
  }
  UniqueFd slave(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (!slave.valid() || tcgetattr(slave.get(), &settings) != 0) return std::nullopt;
  cfmakeraw(&settings);
  tcsetattr(slave.get(), TCSANOW, &settings);
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) ioctl(slave.get(), TIOCSWINSZ, &size);
  return Channel{std::move(master), std::move(slave)};
}

// For what a PE writes. Its standard output is a terminal if the launcher's is one, so that it
// buffers and colours as it would without a launcher.
Channel make_output_channel(int standard_fd) {
  if (standard_fd == STDOUT_FILENO && isatty(STDOUT_FILENO)) {
    if (std::optional<Channel> terminal = make_terminal()) return std::move(*terminal);
  }
  PipeEnds ends = make_pipe();
  return {std::move(ends.read), std::move(ends.write)};
}

// -x VAR passes on what the launcher has, which every PE inherits anyway.
void apply_exports(const AppContext& app, Environment& environment) {
  for (const std::string& text : app.exports) {
    if (text.find('=') != std::string::npos) {
      environment.set(text);
    } else if (!environment.has(text)) {
      fmt::print(stderr, "oshrun: warning: -x {} : there is no such variable to pass on\n", text);
    }
  }
}

}  // namespace

// What a PE gets as its standard streams; owned until the PE has been started.
struct Starter::Streams {
  UniqueFd owned_in, owned_out, owned_err;
  int in = -1;
  int out = -1;
  int err = -1;
  UniqueFd to_in;               // the launcher's end, when the PE reads what is typed
  UniqueFd from_out, from_err;  // and when its output is passed on
};

Starter::Starter(const Options& options, Environment environment, std::vector<Placement> placements)
    : options_(options), placements_(std::move(placements)) {
  environment.set("GIMLET_LAUNCHER=oshrun");
  // Open MPI 4 takes a process without it for one that was not launched, and makes each PE a job
  // of its own. Nobody listens there and nobody calls.
  environment.set(fmt::format("OMPI_MCA_orte_local_daemon_uri={}.0;tcp://127.0.0.1:1", getpid()));
  for (const AppContext& app : options_.apps) {
    Program program{{}, app.argv, environment, app.working_directory};
    apply_exports(app, program.environment);
    const std::string& directory = app.working_directory;
    if (!directory.empty() && access(directory.c_str(), X_OK) != 0) {
      fail(kExitUsage, "cannot use the working directory {} : {}", directory, errno_text());
    }
    program.file = resolve_program(app.argv[0], directory, program.environment.get("PATH"));
    programs_.push_back(std::move(program));
  }
  if (!options_.gdb_pe) return;
  const std::optional<std::string> gdb = find_in_path("gdb", environment.get("PATH"));
  if (!gdb) fail(kExitNotFound, "--gdb needs gdb, and there is none in PATH");
  gdb_ = *gdb;
}

std::vector<Pe> Starter::pes() const {
  std::vector<Pe> pes;
  for (std::size_t app = 0; app < options_.apps.size(); ++app) {
    for (int i = 0; i < options_.apps[app].pes.value_or(0); ++i) {
      Pe pe;
      pe.number = static_cast<int>(pes.size());
      pe.app = static_cast<int>(app);
      pe.program = options_.apps[app].argv[0];
      pes.push_back(std::move(pe));
    }
  }
  return pes;
}

void Starter::prepare_output() const {
  if (options_.output_directory.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options_.output_directory, error);
  if (error) {
    fail(kExitUsage, "cannot make the output directory {} : {}", options_.output_directory,
         error.message());
  }
}

SpawnPlan Starter::plan(const Pe& pe, const PmixServer& server) const {
  const Program& program = programs_[static_cast<std::size_t>(pe.app)];
  SpawnPlan plan;
  plan.file = program.file;
  plan.argv = program.argv;
  plan.environment = program.environment;
  for (std::string& variable : server.environment(pe.number)) {
    plan.environment.set(std::move(variable));
  }
  plan.working_directory = program.working_directory;
  plan.cpu_mask = placements_[static_cast<std::size_t>(pe.number)].cpu_mask;
  if (is_debugged(pe)) {
    plan.argv[0] = program.file;
    plan.argv.insert(plan.argv.begin(), {"gdb", "-q", "--args"});
    plan.file = gdb_;
    plan.takes_terminal = isatty(STDIN_FILENO) != 0;
  }
  return plan;
}

void Starter::connect_input(const Pe& pe, Streams& streams) const {
  if (pe.number != input_pe()) {
    streams.owned_in = open_or_fail("/dev/null", O_RDONLY);
    streams.in = streams.owned_in.get();
  } else if (is_debugged(pe) || !isatty(STDIN_FILENO)) {
    streams.in = STDIN_FILENO;
  } else {
    PipeEnds ends = make_pipe();
    streams.owned_in = std::move(ends.read);
    streams.in = streams.owned_in.get();
    streams.to_in = std::move(ends.write);
  }
}

void Starter::connect_output(const Pe& pe, Streams& streams) const {
  if (is_debugged(pe)) {
    streams.out = STDOUT_FILENO;
    streams.err = STDERR_FILENO;
    return;
  }
  if (!options_.output_directory.empty()) {
    const std::string stem = fmt::format("{}/pe.{}", options_.output_directory, pe.number);
    streams.owned_out = open_or_fail(stem + ".out", O_WRONLY | O_CREAT | O_TRUNC);
    streams.owned_err = open_or_fail(stem + ".err", O_WRONLY | O_CREAT | O_TRUNC);
  } else {
    Channel out = make_output_channel(STDOUT_FILENO);
    Channel err = make_output_channel(STDERR_FILENO);
    streams.owned_out = std::move(out.pe);
    streams.from_out = std::move(out.launcher);
    streams.owned_err = std::move(err.pe);
    streams.from_err = std::move(err.launcher);
  }
  streams.out = streams.owned_out.get();
  streams.err = streams.owned_err.get();
}

void Starter::start(Pe& pe, Session& session, const PmixServer& server,
                    const OriginalState& original, OutputForwarder& output,
                    TerminalInput& input) const {
  Streams streams;
  connect_input(pe, streams);
  connect_output(pe, streams);
  SpawnPlan plan = this->plan(pe, server);
  plan.in = streams.in;
  plan.out = streams.out;
  plan.err = streams.err;
  pe.pid = spawn(plan, original, session.slot(pe.number));
  if (streams.to_in.valid()) input = TerminalInput(std::move(streams.to_in));
  if (streams.from_out.valid()) output.add(pe.number, Stream::kOut, std::move(streams.from_out));
  if (streams.from_err.valid()) output.add(pe.number, Stream::kErr, std::move(streams.from_err));
}

}  // namespace gimlet::oshrun
