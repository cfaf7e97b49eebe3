// SPDX-License-Identifier: BSD-3-Clause
#include "environment.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace gimlet::oshrun {
namespace {

// The name with its equals sign, so that one name is not found as the beginning of another.
std::string key_of(const std::string& assignment) {
  return assignment.substr(0, assignment.find('=') + 1);
}

}  // namespace

void forget_outer_launcher() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.starts_with("PMIX_") && !text.starts_with("PMIX_MCA_")) {
      names.push_back(text.substr(0, text.find('=')));
    }
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

Environment Environment::inherited() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    environment.assignments_.emplace_back(*entry);
  }
  return environment;
}

void Environment::set(std::string assignment) {
  const std::string key = key_of(assignment);
  const auto found = std::find_if(assignments_.begin(), assignments_.end(),
                                  [&](const std::string& text) { return text.starts_with(key); });
  if (found != assignments_.end()) {
    *found = std::move(assignment);
  } else {
    assignments_.push_back(std::move(assignment));
  }
}

std::string Environment::get(const std::string& name) const {
  for (const std::string& text : assignments_) {
    if (text.starts_with(name + "=")) return text.substr(name.size() + 1);
  }
  return {};
}

bool Environment::has(const std::string& name) const {
  return std::any_of(assignments_.begin(), assignments_.end(),
                     [&](const std::string& text) { return text.starts_with(name + "="); });
}

std::vector<char*> Environment::pointers() {
  std::vector<char*> entries;
  entries.reserve(assignments_.size() + 1);
  for (std::string& text : assignments_) entries.push_back(text.data());
  entries.push_back(nullptr);
  return entries;
}

}  // namespace gimlet::oshrun
