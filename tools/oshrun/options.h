// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_OPTIONS_H
#define GIMLET_TOOLS_OSHRUN_OPTIONS_H

#include <optional>
#include <string>
#include <vector>

namespace gimlet::oshrun {

// PMIx keeps local ranks in 16 bits.
inline constexpr int kMaxPes = 65535;

enum class BindPolicy { kDefault, kCore, kNuma, kNone };

// One program of the command line: what stands between two `:`.
struct AppContext {
  std::optional<int> pes;  // unset: one PE per allowed core
  std::vector<std::string> argv;
  std::vector<std::string> exports;  // as given to -x: VAR=VAL, or VAR alone
  std::string working_directory;     // empty: the launcher's own
};

struct Options {
  std::vector<AppContext> apps;
  bool tag_output = false;
  bool report_bindings = false;
  bool keep_going = false;
  bool verbose = false;
  std::string output_directory;
  std::optional<double> timeout_seconds;
  BindPolicy bind = BindPolicy::kDefault;
  std::optional<int> gdb_pe;
  std::vector<std::string> hosts;  // each as given to --host, commas kept
  std::string hostfile;
};

// Reads the command line. Throws LaunchError with exit code 2 and one sentence when it is wrong.
// Returns nothing when --help or --version was asked for and printed.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace gimlet::oshrun

#endif
