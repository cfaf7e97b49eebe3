// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_PROGRAM_H
#define GIMLET_TOOLS_OSHRUN_PROGRAM_H

#include <optional>
#include <string>

namespace gimlet::oshrun {

// The file that a PE executes for a program's name: the name itself if it has a slash (relative to
// working_directory, as the PE will see it), else the first match in search_path, else a file of
// working_directory. Throws LaunchError with exit code 126 or 127 and one sentence.
std::string resolve_program(const std::string& name, const std::string& working_directory,
                            const std::string& search_path);

// The first executable of that name in search_path.
std::optional<std::string> find_in_path(const std::string& name, const std::string& search_path);

}  // namespace gimlet::oshrun

#endif
