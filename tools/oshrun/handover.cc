// SPDX-License-Identifier: BSD-3-Clause
#include "handover.h"

#include <fmt/ranges.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <sstream>

#include "launch_error.h"
#include "program.h"

namespace gimlet::oshrun {
namespace {

using Words = std::vector<std::string>;

std::string environment_of(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

bool is_inside_slurm() {
  return !environment_of("SLURM_JOB_ID").empty();
}

bool is_inside_allocation() {
  return is_inside_slurm() || !environment_of("PBS_NODEFILE").empty() ||
         !environment_of("LSB_JOBID").empty();
}

void append(Words& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

const char* bind_name(BindPolicy policy) {
  switch (policy) {
    case BindPolicy::kCore:
      return "core";
    case BindPolicy::kNuma:
      return "numa";
    default:
      return "none";
  }
}

// Whole seconds: the others take no fractions.
std::string whole_seconds(double seconds) {
  return std::to_string(static_cast<long long>(std::ceil(seconds)));
}

// Arguments common to mpirun and prterun, for one program.
void append_program(Words& words, const AppContext& app) {
  if (app.pes) append(words, {"-np", std::to_string(*app.pes)});
  for (const std::string& text : app.exports) append(words, {"-x", text});
  if (!app.working_directory.empty()) append(words, {"--wdir", app.working_directory});
  words.insert(words.end(), app.argv.begin(), app.argv.end());
}

void append_programs(Words& words, const Options& options) {
  for (std::size_t i = 0; i < options.apps.size(); ++i) {
    if (i > 0) words.emplace_back(":");
    append_program(words, options.apps[i]);
  }
}

void append_hosts(Words& words, const Options& options) {
  if (!options.hosts.empty()) {
    append(words, {"--host", fmt::format("{}", fmt::join(options.hosts, ","))});
  }
  if (!options.hostfile.empty()) append(words, {"--hostfile", options.hostfile});
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  if (options.timeout_seconds) {
    append(words, {"--timeout", whole_seconds(*options.timeout_seconds)});
  }
  if (options.bind != BindPolicy::kDefault) append(words, {"--bind-to", bind_name(options.bind)});
}

Words mpirun_command(const Options& options) {
  Words words{"mpirun"};
  append_hosts(words, options);
  words.emplace_back("--oversubscribe");
  if (options.tag_output) words.emplace_back("--tag-output");
  if (options.report_bindings) words.emplace_back("--report-bindings");
  if (options.keep_going) words.emplace_back("--enable-recovery");
  if (!options.output_directory.empty()) {
    append(words, {"--output-filename", options.output_directory + ":nocopy"});
  }
  append_programs(words, options);
  return words;
}

Words prterun_command(const Options& options) {
  Words words{"prterun"};
  append_hosts(words, options);
  append(words, {"--map-by", ":OVERSUBSCRIBE"});
  Words output;
  if (options.tag_output) output.emplace_back("tag");
  if (!options.output_directory.empty()) output.push_back("dir=" + options.output_directory);
  if (!output.empty()) append(words, {"--output", fmt::format("{}", fmt::join(output, ","))});
  if (options.report_bindings) append(words, {"--display", "bind"});
  if (options.keep_going) words.emplace_back("--enable-recovery");
  append_programs(words, options);
  return words;
}

// Host names of hosts and hostfile without what mpirun lets follow them (":slots", "slots=2").
std::string plain_hosts(const Options& options) {
  Words names;
  for (const std::string& list : options.hosts) {
    std::istringstream stream(list);
    for (std::string host; std::getline(stream, host, ',');) {
      names.push_back(host.substr(0, host.find(':')));
    }
  }
  if (!options.hostfile.empty()) {
    std::ifstream file(options.hostfile);
    if (!file) fail(kExitUsage, "cannot read the hostfile {} : {}", options.hostfile, errno_text());
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line.substr(0, line.find('#')));
      if (std::string host; words >> host) names.push_back(host);
    }
  }
  return fmt::format("{}", fmt::join(names, ","));
}

// One word of srun's --multi-prog file, where blanks separate, and % and \ have a meaning.
std::string multi_prog_word(const std::string& word) {
  if (word.find('\n') != std::string::npos) {
    fail(kExitUsage, "an argument with a newline can't be handed over to srun in a `:` list");
  }
  std::string quoted;
  for (const char c : word) {
    if (c == '%') quoted += '%';
    if (std::isspace(static_cast<unsigned char>(c)) || c == '\\' || c == '"' || c == '\'') {
      quoted += '\\';
    }
    quoted += c;
  }
  return quoted;
}

// env(1) carries what differs from program to program.
Words with_env(const AppContext& app) {
  Words words{"env"};
  if (!app.working_directory.empty()) append(words, {"-C", app.working_directory});
  for (const std::string& text : app.exports) {
    if (text.find('=') != std::string::npos) words.push_back(text);
  }
  if (words.size() == 1) words.clear();
  words.insert(words.end(), app.argv.begin(), app.argv.end());
  return words;
}

// srun reads which program is for which PE from a file. A memory file leaves nothing behind; srun
// inherits it.
std::string multi_prog_file(const Options& options) {
  std::string text;
  int first = 0;
  for (const AppContext& app : options.apps) {
    if (!app.pes) fail(kExitUsage, "each program of a `:` list needs its own -n");
    text += fmt::format("{}-{}", first, first + *app.pes - 1);
    for (const std::string& word : with_env(app)) text += " " + multi_prog_word(word);
    text += "\n";
    first += *app.pes;
  }
  const int fd = memfd_create("oshrun-programs", 0);
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(fd, 0, SEEK_SET) != 0) {
    fail(kExitLauncher, "cannot write the list of programs for srun: {}", errno_text());
  }
  return fmt::format("/proc/self/fd/{}", fd);
}

std::string srun_binding(const Options& options) {
  Words parts;
  if (options.report_bindings) parts.emplace_back("verbose");
  if (options.bind == BindPolicy::kCore) parts.emplace_back("cores");
  if (options.bind == BindPolicy::kNuma) parts.emplace_back("ldoms");
  if (options.bind == BindPolicy::kNone) parts.emplace_back("none");
  return fmt::format("{}", fmt::join(parts, ","));
}

void append_srun_programs(Words& words, const Options& options) {
  if (options.apps.size() > 1) {
    int total = 0;
    for (const AppContext& app : options.apps) total += app.pes.value_or(0);
    const std::string file = multi_prog_file(options);
    append(words, {"-n", std::to_string(total), "--multi-prog", file});
    return;
  }
  const AppContext& app = options.apps.front();
  if (app.pes) append(words, {"-n", std::to_string(*app.pes)});
  if (!app.working_directory.empty()) words.push_back("--chdir=" + app.working_directory);
  // srun passes its environment on; its own option for variables can't hold a comma.
  for (const std::string& text : app.exports) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) continue;
    setenv(text.substr(0, equals).c_str(), text.substr(equals + 1).c_str(), 1);
  }
  words.insert(words.end(), app.argv.begin(), app.argv.end());
}

Words srun_command(const Options& options) {
  Words words;
  // srun's own limit counts in minutes; timeout(1) ends with 124 as oshrun does.
  if (options.timeout_seconds) {
    append(words, {"timeout", "-k", "2", fmt::format("{}", *options.timeout_seconds)});
  }
  append(words, {"srun", "--mpi=pmix", "--overcommit", "--export=ALL"});
  words.push_back(fmt::format("--kill-on-bad-exit={}", options.keep_going ? 0 : 1));
  const std::string hosts = plain_hosts(options);
  if (!hosts.empty()) words.push_back("--nodelist=" + hosts);
  if (options.tag_output) words.emplace_back("--label");
  if (!options.output_directory.empty()) {
    words.push_back("--output=" + options.output_directory + "/pe.%t.out");
    words.push_back("--error=" + options.output_directory + "/pe.%t.err");
  }
  const std::string binding = srun_binding(options);
  if (!binding.empty()) words.push_back("--cpu-bind=" + binding);
  append_srun_programs(words, options);
  return words;
}

struct Choice {
  const char* name;
  Words (*command)(const Options&);
};

Words choose_command(const Options& options) {
  constexpr Choice kSrun{"srun", srun_command};
  constexpr Choice kPrterun{"prterun", prterun_command};
  constexpr Choice kMpirun{"mpirun", mpirun_command};
  std::vector<Choice> choices{kPrterun, kMpirun};
  choices.insert(is_inside_slurm() ? choices.begin() : choices.end(), kSrun);
  for (const Choice& choice : choices) {
    if (find_in_path(choice.name, environment_of("PATH"))) return choice.command(options);
  }
  fail(kExitNotFound, "{} needs srun, prterun or mpirun, and none is in PATH{}",
       is_inside_allocation() ? "a job inside an allocation" : "a job on given hosts",
       is_inside_allocation() ? "; GIMLET_OSHRUN_HANDOVER=none runs it on this host alone" : "");
}

// As a shell would have to read it.
std::string quoted(const std::string& word) {
  const bool is_plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
  });
  if (is_plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_line(const Words& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

}  // namespace

bool wants_handover(const Options& options) {
  if (!options.hosts.empty() || !options.hostfile.empty()) return true;
  return is_inside_allocation() && environment_of("GIMLET_OSHRUN_HANDOVER") != "none";
}

void hand_over(const Options& options) {
  if (options.gdb_pe) {
    fail(kExitUsage,
         "--gdb works on this host alone: no --host, no --hostfile, and inside an "
         "allocation GIMLET_OSHRUN_HANDOVER=none");
  }
  Words words = choose_command(options);
  if (options.verbose) fmt::print(stderr, "oshrun: {}\n", command_line(words));
  fflush(nullptr);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  fail(kExitCannotExecute, "cannot execute {} : {}", words[0], errno_text());
}

}  // namespace gimlet::oshrun
