// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_STARTER_H
#define GIMLET_TOOLS_OSHRUN_STARTER_H

#include <string>
#include <vector>

#include "binding.h"
#include "environment.h"
#include "input.h"
#include "options.h"
#include "output.h"
#include "process_table.h"
#include "server.h"
#include "session.h"
#include "spawn.h"

namespace gimlet::oshrun {

// Turns the command line into processes. What can be wrong with a program, a directory or gdb is
// found by the constructor, before anything is started.
class Starter {
 public:
  // environment: what PEs inherit. The options must have a number of PEs in each app.
  Starter(const Options& options, Environment environment, std::vector<Placement> placements);

  // The PEs, not yet started.
  [[nodiscard]] std::vector<Pe> pes() const;
  // Makes the directory of --output-dir.
  void prepare_output() const;
  // Starts one PE and connects its streams.
  void start(Pe& pe, Session& session, const PmixServer& server, const OriginalState& original,
             OutputForwarder& output, TerminalInput& input) const;

 private:
  struct Program {
    std::string file;
    std::vector<std::string> argv;
    Environment environment;
    std::string working_directory;
  };
  struct Streams;

  [[nodiscard]] SpawnPlan plan(const Pe& pe, const PmixServer& server) const;
  [[nodiscard]] bool is_debugged(const Pe& pe) const { return options_.gdb_pe == pe.number; }
  [[nodiscard]] int input_pe() const { return options_.gdb_pe.value_or(0); }
  void connect_input(const Pe& pe, Streams& streams) const;
  void connect_output(const Pe& pe, Streams& streams) const;

  const Options& options_;
  std::vector<Program> programs_;
  std::vector<Placement> placements_;
  std::string gdb_;
};

}  // namespace gimlet::oshrun

#endif
