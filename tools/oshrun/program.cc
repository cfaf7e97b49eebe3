// SPDX-License-Identifier: BSD-3-Clause
#include "program.h"

#include <sys/stat.h>
#include <unistd.h>

#include "launch_error.h"

namespace gimlet::oshrun {
namespace {

// 0, or the errno that an exec of the file would give.
int exec_problem(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

std::string below(const std::string& directory, const std::string& name) {
  return directory.empty() || name.starts_with('/') ? name : directory + "/" + name;
}

}  // namespace

std::optional<std::string> find_in_path(const std::string& name, const std::string& search_path) {
  for (std::size_t begin = 0; begin <= search_path.size();) {
    const std::size_t end = std::min(search_path.find(':', begin), search_path.size());
    const std::string directory = search_path.substr(begin, end - begin);
    const std::string file = (directory.empty() ? "." : directory) + "/" + name;
    if (exec_problem(file) == 0) return file;
    begin = end + 1;
  }
  return std::nullopt;
}

std::string resolve_program(const std::string& name, const std::string& working_directory,
                            const std::string& search_path) {
  const bool has_slash = name.find('/') != std::string::npos;
  if (!has_slash) {
    if (const std::optional<std::string> found = find_in_path(name, search_path)) return *found;
  }
  const int problem = exec_problem(below(working_directory, has_slash ? name : "./" + name));
  if (problem == 0) return has_slash ? name : "./" + name;
  if (problem == ENOENT) {
    fail(kExitNotFound, "cannot find the program {}{}", name,
         has_slash ? "" : " in PATH or in the working directory");
  }
  fail(problem == ENOTDIR ? kExitNotFound : kExitCannotExecute, "cannot execute {} : {}", name,
       errno_text(problem));
}

}  // namespace gimlet::oshrun
