// SPDX-License-Identifier: BSD-3-Clause
#include "device/settings.h"

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <string>

#include "suite.h"

extern char** environ;

namespace {

using gimlet::Code;
using gimlet::Status;
using gimlet::device::load_settings;
using gimlet::device::setting_table;
using gimlet::device::setting_text;
using gimlet::device::SettingInfo;
using gimlet::device::Settings;
using gimlet::device::SettingType;

bool is_ours(const std::string& name) {
  return name.starts_with("GIMLET_") || name.starts_with("GIN_") || name.starts_with("SHMEM_") ||
         name.starts_with("SMA_");
}

/// Each test starts without any of our names, whatever the caller has set.
void clear_environment() {
  for (bool again = true; again;) {
    again = false;
    for (char** entry = environ; *entry != nullptr && !again; ++entry) {
      const std::string text(*entry);
      const std::string name = text.substr(0, text.find('='));
      if (!is_ours(name)) continue;
      ::unsetenv(name.c_str());
      again = true;
    }
  }
}

struct Loaded {
  Status status;
  Settings values;
  std::vector<std::string> unknown;
};

Loaded load() {
  Loaded result;
  result.status = load_settings(result.values, result.unknown);
  return result;
}

Loaded load_with(const char* name, const char* value) {
  clear_environment();
  ::setenv(name, value, 1);
  return load();
}

/// Refused, with a sentence that has the name, the value and what is allowed.
void check_refused(const char* name, const char* value, const char* allowed) {
  const Loaded result = load_with(name, value);
  ck_assert_msg(result.status.code() == Code::kInvalidArgument, "%s='%s' is taken", name, value);
  const std::string& sentence = result.status.message();
  ck_assert_msg(sentence.find(name) != std::string::npos, "%s", sentence.c_str());
  ck_assert_msg(sentence.find("'" + std::string(value) + "'") != std::string::npos, "%s",
                sentence.c_str());
  ck_assert_msg(sentence.find(allowed) != std::string::npos, "%s", sentence.c_str());
}

constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kMi = kKi * kKi;
constexpr std::uint64_t kGi = kMi * kKi;
constexpr std::uint64_t kTi = kGi * kKi;

struct Size {
  const char* text;
  std::uint64_t bytes;
};
constexpr Size kSizes[] = {
    {"0", 0},
    {"1", 1},
    {"4096", 4096},
    {"007", 7},
    {"20k", 20 * kKi},
    {"20K", 20 * kKi},
    {"3m", 3 * kMi},
    {"3M", 3 * kMi},
    {"2g", 2 * kGi},
    {"2G", 2 * kGi},
    {"1t", kTi},
    {"1T", kTi},
    {".5m", kMi / 2},
    {"0.5m", kMi / 2},
    {"5.m", 5 * kMi},
    {"3.1M", 3250586},  // 3250585.6: at least the product
    {"0.1k", 103},      // 102.4
    {"1.5", 2},
    {"0.0", 0},
    {"0.00000001", 1},
    {"20kk", 20 * kKi},  // what follows the suffix is ignored
    {"20k bytes", 20 * kKi},
    {"1gb", kGi},
    {"1MiB", kMi},
    {"65535t", 65535 * kTi},
};

constexpr const char* kNoSizes[] = {
    "",
    " ",
    "-1",
    "-0",
    "+1",
    " 1",
    "k",
    ".",
    ".k",
    "abc",
    "0x10",
    "1e3",
    "1e3m",
    "inf",
    "nan",
    "1,5m",
    "1.2.3m",
    "20 k",
    "20x",
    "--1",
    "1..5m",
    "m20",
    "65536t",
    "99999999999999999999999999",
    "1000000000000t",
};

START_TEST(sizes_are_integers_or_fractions_with_a_suffix) {
  for (const Size& size : kSizes) {
    const Loaded result = load_with("SHMEM_SYMMETRIC_SIZE", size.text);
    ck_assert_msg(result.status.ok(), "'%s': %s", size.text, result.status.message().c_str());
    ck_assert_msg(result.values.symmetric_size == size.bytes, "'%s' is %llu, not %llu", size.text,
                  static_cast<unsigned long long>(result.values.symmetric_size),
                  static_cast<unsigned long long>(size.bytes));
  }
}
END_TEST

START_TEST(what_is_no_size_is_refused) {
  for (const char* text : kNoSizes) check_refused("SHMEM_SYMMETRIC_SIZE", text, "a size such as");
}
END_TEST

/// strtod would read a comma in many languages.
START_TEST(the_language_changes_nothing) {
  for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8"}) {
    if (std::setlocale(LC_ALL, locale) != nullptr) break;
  }
  ck_assert(load_with("SHMEM_SYMMETRIC_SIZE", "1.5k").values.symmetric_size == 1536);
  check_refused("SHMEM_SYMMETRIC_SIZE", "1,5k", "a size such as");
}
END_TEST

START_TEST(defaults_are_those_of_the_table) {
  clear_environment();
  const Loaded result = load();
  ck_assert(result.status.ok());
  ck_assert_uint_eq(result.values.symmetric_size, 256 * kMi);
  ck_assert(result.values.transport == "auto");
  ck_assert(!result.values.debug && !result.values.show_info && !result.values.show_version);
  ck_assert(result.unknown.empty());
}
END_TEST

START_TEST(presence_counts_not_the_value) {
  for (const char* value : {"", "0", "no", "1", "off"}) {
    ck_assert(load_with("SHMEM_VERSION", value).values.show_version);
    ck_assert(load_with("SHMEM_INFO", value).values.show_info);
    ck_assert(load_with("SHMEM_DEBUG", value).values.debug);
    ck_assert(load_with("SMA_DEBUG", value).values.debug);
  }
}
END_TEST

START_TEST(old_names_count_and_new_names_win) {
  ck_assert_uint_eq(load_with("SMA_SYMMETRIC_SIZE", "3k").values.symmetric_size, 3 * kKi);
  ck_assert(load_with("SMA_VERSION", "1").values.show_version);
  ck_assert(load_with("SMA_INFO", "1").values.show_info);

  clear_environment();
  ::setenv("SMA_SYMMETRIC_SIZE", "3k", 1);
  ::setenv("SHMEM_SYMMETRIC_SIZE", "5k", 1);
  ck_assert_uint_eq(load().values.symmetric_size, 5 * kKi);
  ::setenv("SMA_SYMMETRIC_SIZE", "nonsense", 1);
  ck_assert(load().status.ok());
  // An empty new name is set, and is no size.
  ::setenv("SMA_SYMMETRIC_SIZE", "3k", 1);
  ::setenv("SHMEM_SYMMETRIC_SIZE", "", 1);
  ck_assert(!load().status.ok());
  // The sentence names the variable that the user wrote.
  check_refused("SMA_SYMMETRIC_SIZE", "-3", "a size such as");
}
END_TEST

START_TEST(choices_are_spelled_exactly) {
  ck_assert(load_with("GIMLET_TRANSPORT", "ucx").values.transport == "ucx");
  ck_assert(load_with("GIMLET_TRANSPORT", "auto").values.transport == "auto");
  for (const char* value : {"ucxx", "uc", "UCX", "", " ucx", "ucx ", "auto|ucx", "auto,ucx", "|"}) {
    check_refused("GIMLET_TRANSPORT", value, "auto or ucx");
  }
  check_refused("GIN_PATH", "dirct", "direct");
  check_refused("GIN_EXECUTOR", "fiber", "fibers or threads");
}
END_TEST

START_TEST(seconds_are_plain_decimals) {
  ck_assert_double_eq(load_with("GIMLET_WAIT_REPORT", "2.5").values.host_wait_report, 2.5);
  ck_assert_double_eq(load_with("GIMLET_WAIT_REPORT", ".25").values.host_wait_report, 0.25);
  ck_assert_double_eq(load_with("GIMLET_WAIT_REPORT", "0").values.host_wait_report, 0);
  ck_assert_double_eq(load_with("GIMLET_CONNECT_TIMEOUT", "0.5").values.connect_timeout, 0.5);
  for (const char* value : {"", "-1", "1s", "1e3", "inf", "nan", "0x1", "1 ", "5000000000"}) {
    check_refused("GIMLET_WAIT_REPORT", value, "seconds");
  }
  for (const char* value : {"0", "0.0", "-1", "soon"}) {
    check_refused("GIMLET_CONNECT_TIMEOUT", value, "more than 0");
  }
}
END_TEST

START_TEST(counts_are_whole_numbers) {
  ck_assert_uint_eq(load_with("GIN_EXECUTOR_WORKERS", "3").values.executor_workers, 3);
  ck_assert_uint_eq(load_with("GIN_LSA_TEAM_SIZE", "0").values.lsa_team_size, 0);
  for (const char* value :
       {"", "-1", "+1", "1.5", "1k", "x", " 1", "0x1", "18446744073709551616", "99999999999"}) {
    check_refused("GIN_EXECUTOR_WORKERS", value, "a whole number");
  }
}
END_TEST

START_TEST(unknown_names_of_ours_are_told) {
  clear_environment();
  ::setenv("GIMLET_TRANSPROT", "ucx", 1);
  ::setenv("GIN_PTAH", "direct", 1);
  ::setenv("GIMLET_", "1", 1);
  ::setenv("GIMLETTE_TRANSPORT", "1", 1);    // not ours
  ::setenv("SHMEM_SOMETHING_ELSE", "1", 1);  // the standard's prefix is everybody's
  ::setenv("SMA_SOMETHING_ELSE", "1", 1);
  ::setenv("MY_GIMLET_TRANSPORT", "1", 1);
  Loaded result = load();
  ck_assert(result.status.ok());
  std::sort(result.unknown.begin(), result.unknown.end());
  const std::vector<std::string> expected{"GIMLET_", "GIMLET_TRANSPROT", "GIN_PTAH"};
  ck_assert(result.unknown == expected);
}
END_TEST

START_TEST(names_of_launcher_and_tests_are_not_unknown) {
  clear_environment();
  for (const char* name : {"GIMLET_LAUNCHER", "GIMLET_OSHRUN_SESSION", "GIMLET_TEST_SEED"})
    ::setenv(name, "1", 1);
  const Loaded result = load();
  ck_assert_msg(result.unknown.empty(), "%s", result.unknown.front().c_str());
}
END_TEST

START_TEST(every_row_has_a_sentence_and_a_default_that_parses) {
  clear_environment();
  ck_assert(load().status.ok());
  for (const SettingInfo& info : setting_table()) {
    ck_assert(std::string(info.sentence).size() > 5);
    ck_assert(std::string(info.allowed).size() > 2);
    ck_assert(is_ours(info.name));
    ck_assert(setting_text(info) ==
              (info.type == SettingType::kPresence ? "off" : std::string(info.fallback)));
  }
}
END_TEST

START_TEST(text_is_the_value_in_force) {
  clear_environment();
  ::setenv("SMA_SYMMETRIC_SIZE", "7m", 1);
  ::setenv("SHMEM_DEBUG", "", 1);
  for (const SettingInfo& info : setting_table()) {
    if (info.name == std::string("SHMEM_SYMMETRIC_SIZE")) ck_assert(setting_text(info) == "7m");
    if (info.name == std::string("SHMEM_DEBUG")) ck_assert(setting_text(info) == "on");
  }
}
END_TEST

}  // namespace

int main() {
  return gimlet::tests::run_suite(
      "settings",
      {sizes_are_integers_or_fractions_with_a_suffix, what_is_no_size_is_refused,
       the_language_changes_nothing, defaults_are_those_of_the_table, presence_counts_not_the_value,
       old_names_count_and_new_names_win, choices_are_spelled_exactly, seconds_are_plain_decimals,
       counts_are_whole_numbers, unknown_names_of_ours_are_told,
       names_of_launcher_and_tests_are_not_unknown,
       every_row_has_a_sentence_and_a_default_that_parses, text_is_the_value_in_force});
}
