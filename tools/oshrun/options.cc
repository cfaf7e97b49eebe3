// SPDX-License-Identifier: BSD-3-Clause
#include "options.h"

#include <fmt/format.h>
#include <pmix.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>

#include "config.h"
#include "launch_error.h"

namespace gimlet::oshrun {
namespace {

using Words = std::vector<std::string>;

// The options of one app context as CLI11 stores them. Numbers stay text here: CLI11's own
// complaints do not say what is allowed.
struct RawOptions {
  std::string pes;
  Words exports;
  std::string working_directory;
  bool tag_output = false;
  bool report_bindings = false;
  bool keep_going = false;
  bool verbose = false;
  std::string output_directory;
  std::string timeout;
  std::string bind;
  std::string gdb;
  Words hosts;
  std::string hostfile;
  bool help = false;
  bool version = false;
};

constexpr const char* kSynopsis =
    "oshrun [options] program [arguments] [ : [-n N] [-x VAR] [--wdir DIR] program [arguments] "
    "]...";

constexpr const char* kFooter =
    "A long option may also be written with one dash, as in mpirun: -np 4, -wdir DIR.\n"
    "After a ':' only -n, -x and --wdir are allowed; they hold for that program alone.\n"
    "With --host or --hostfile, or inside an allocation of Slurm, PBS or LSF, oshrun hands the "
    "job\n"
    "over to srun, prterun or mpirun; GIMLET_OSHRUN_HANDOVER=none keeps it on this host.\n"
    "Exit code: that of the first PE that failed (128 + signal if a signal killed it), 124 after\n"
    "--timeout, 125 if oshrun itself failed, 126 or 127 if a program can't be run or found.";

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return fmt::format("Usage: {}\n", kSynopsis);
  }
};

void add_app_options(CLI::App& app, RawOptions& raw) {
  app.add_option("-n,--n,--np", raw.pes, "number of PEs (default: one per allowed core)")
      ->type_name("N");
  app.add_option("-x,--export", raw.exports, "set VAR in the PEs, or pass on the launcher's VAR")
      ->type_name("VAR[=VAL]")
      ->take_all()
      ->expected(1);
  app.add_option("--wdir", raw.working_directory, "working directory of the PEs")->type_name("DIR");
}

void add_job_options(CLI::App& app, RawOptions& raw) {
  app.add_flag("--tag-output", raw.tag_output, "begin each line of output with its PE");
  app.add_option("--output-dir", raw.output_directory,
                 "write the output of PE i to DIR/pe.i.out and DIR/pe.i.err")
      ->type_name("DIR");
  app.add_option("--timeout", raw.timeout, "end the job after that time, with exit code 124")
      ->type_name("SECONDS");
  app.add_option("--bind-to", raw.bind,
                 "bind each PE (default: core if the PEs fit the allowed cores, else none)")
      ->type_name("core|numa|none");
  app.add_flag("--report-bindings", raw.report_bindings, "say where each PE is bound");
  app.add_option("--gdb", raw.gdb, "run that PE under gdb, on this terminal")->type_name("PE");
  app.add_flag("-k,--keep-going", raw.keep_going,
               "when a PE dies tell the others by a PMIx event, do not end them");
  app.add_option("-H,--host", raw.hosts, "hand over, to run on these hosts")
      ->type_name("HOST,...")
      ->take_all()
      ->expected(1);
  app.add_option("--hostfile,--machinefile", raw.hostfile, "hand over, to run on these hosts")
      ->type_name("FILE");
  app.add_flag("-v,--verbose", raw.verbose, "print the command of a hand-over, or each PE's pid");
}

// Help and version are plain flags: CLI11's own would end the parse before other checks.
void add_information_options(CLI::App& app, RawOptions& raw) {
  app.set_help_flag();
  app.add_flag("-h,--help", raw.help, "print this help");
  app.add_flag("-V,--version", raw.version, "print the version");
}

std::string allowed_names(const CLI::App& app) {
  std::string names;
  for (const CLI::Option* option : app.get_options()) {
    if (!names.empty()) names += ", ";
    names += option->get_snames().empty() ? "--" + option->get_lnames().front()
                                          : "-" + option->get_snames().front();
  }
  return names;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// A word of the command line that begins with a dash, taken apart.
struct OptionWord {
  const CLI::Option* option = nullptr;  // null: there is no such option
  std::optional<std::string> value;     // what the word itself holds: --np=4, -np=4, -n4
};

OptionWord read_option(const CLI::App& app, const std::string& word) {
  const bool two_dashes = word.starts_with("--");
  const std::size_t begin = two_dashes ? 2 : 1;
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(begin, equals - begin);
  if (two_dashes || name.size() > 1) {
    if (const CLI::Option* option = app.get_option_no_throw("--" + name)) {
      if (equals == std::string::npos) return {option, std::nullopt};
      return {takes_value(*option) ? option : nullptr, word.substr(equals + 1)};
    }
  }
  if (two_dashes) return {};
  const CLI::Option* option = app.get_option_no_throw(word.substr(0, 2));
  if (option == nullptr || word.size() == 2) return {option, std::nullopt};
  return {takes_value(*option) ? option : nullptr, word.substr(2)};
}

// Several values: -x and --host; any other option has one.
void check_repetition(const CLI::Option& option, const std::string& word, int count) {
  const bool takes_several = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (count > 1 && !takes_several) {
    fail(kExitUsage, "option {} was given {} times; once is allowed", word, count);
  }
}

// Moves the launcher's options from the front of words to the result, each as one word
// `--name=value`: the one form in which CLI11 reads every option and every value. The first word
// that is neither an option nor an option's value is the program and stays with what follows it.
Words take_options(const CLI::App& app, Words& words) {
  Words options;
  std::map<const CLI::Option*, int> counts;
  std::size_t at = 0;
  while (at < words.size() && words[at].size() > 1 && words[at][0] == '-') {
    const std::string& word = words[at++];
    if (word == "--") break;
    auto [option, value] = read_option(app, word);
    if (option == nullptr) {
      fail(kExitUsage, "unknown option {} here; allowed are {}", word, allowed_names(app));
    }
    const std::string name = "--" + option->get_lnames().front();
    if (!takes_value(*option)) {
      options.push_back(name);
      continue;
    }
    check_repetition(*option, word, ++counts[option]);
    if (!value && at < words.size()) value = words[at++];
    if (!value || value->empty()) {
      fail(kExitUsage, "option {} wants a value: {}", word, option->get_type_name());
    }
    options.push_back(name + "=" + *value);
  }
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
  return options;
}

template <typename Number>
std::optional<Number> parse_number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int> parse_pes(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::optional<int> pes = parse_number<int>(text);
  if (!pes || *pes < 1 || *pes > kMaxPes) {
    fail(kExitUsage, "-n wants a number of PEs from 1 to {} , not {}", kMaxPes, text);
  }
  return pes;
}

std::optional<double> parse_timeout(const std::string& text) {
  if (text.empty()) return std::nullopt;
  // A limit of some years: beyond it the arithmetic of deadlines in nanoseconds would wrap.
  constexpr double kMaxSeconds = 1e8;
  const std::optional<double> seconds = parse_number<double>(text);
  if (!seconds || !std::isfinite(*seconds) || *seconds <= 0 || *seconds > kMaxSeconds) {
    fail(kExitUsage, "--timeout wants a number of seconds above 0 and at most 1e8, not {}", text);
  }
  return seconds;
}

BindPolicy parse_bind(const std::string& text) {
  if (text.empty()) return BindPolicy::kDefault;
  if (text == "core") return BindPolicy::kCore;
  if (text == "numa") return BindPolicy::kNuma;
  if (text == "none") return BindPolicy::kNone;
  fail(kExitUsage, "--bind-to wants core, numa or none, not {}", text);
}

std::optional<int> parse_gdb_pe(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::optional<int> pe = parse_number<int>(text);
  if (!pe || *pe < 0 || *pe >= kMaxPes) {
    fail(kExitUsage, "--gdb wants the number of a PE from 0 to one less than -n, not {}", text);
  }
  return pe;
}

void check_export(const std::string& text) {
  if (text.empty() || text[0] == '=') {
    fail(kExitUsage, "-x wants VAR or VAR=VAL, not '{}'", text);
  }
}

AppContext app_context(const RawOptions& raw, Words argv) {
  for (const std::string& text : raw.exports) check_export(text);
  return {parse_pes(raw.pes), std::move(argv), raw.exports, raw.working_directory};
}

void set_job_options(const RawOptions& raw, Options& options) {
  options.tag_output = raw.tag_output;
  options.report_bindings = raw.report_bindings;
  options.keep_going = raw.keep_going;
  options.verbose = raw.verbose;
  options.output_directory = raw.output_directory;
  options.timeout_seconds = parse_timeout(raw.timeout);
  options.bind = parse_bind(raw.bind);
  options.gdb_pe = parse_gdb_pe(raw.gdb);
  options.hosts = raw.hosts;
  options.hostfile = raw.hostfile;
}

std::vector<Words> split_at_colons(int argc, char** argv) {
  std::vector<Words> contexts(1);
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == ":") {
      contexts.emplace_back();
    } else {
      contexts.back().emplace_back(argv[i]);
    }
  }
  return contexts;
}

void print_version() {
  fmt::print("oshrun (Gimlet) {}\nPMIx {}\n", GIMLET_VERSION, PMIx_Get_version());
}

// Parses the options of one context into what app is bound to; returns the program and its words.
Words parse_context(CLI::App& app, Words words) {
  Words options = take_options(app, words);
  std::reverse(options.begin(), options.end());  // CLI11 takes its words from the back
  try {
    app.parse(std::move(options));
  } catch (const CLI::ParseError& error) {
    fail(kExitUsage, "{}", error.what());
  }
  return words;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  const std::vector<Words> contexts = split_at_colons(argc, argv);
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    RawOptions raw;
    CLI::App app("Launches the PEs of an OpenSHMEM, MPI or PMIx job on this host.", "oshrun");
    app.formatter(std::make_shared<HelpFormatter>());
    app.footer(kFooter);
    add_information_options(app, raw);
    add_app_options(app, raw);
    if (i == 0) add_job_options(app, raw);
    Words program = parse_context(app, contexts[i]);
    if (raw.help) fmt::print("{}", app.help());
    if (raw.version) print_version();
    if (raw.help || raw.version) return std::nullopt;
    if (program.empty()) {
      fail(kExitUsage, "no program to run{}; usage: {}",
           contexts.size() > 1 ? fmt::format(" in part {} of the command", i + 1) : "", kSynopsis);
    }
    options.apps.push_back(app_context(raw, std::move(program)));
    if (i == 0) set_job_options(raw, options);
  }
  return options;
}

}  // namespace gimlet::oshrun
