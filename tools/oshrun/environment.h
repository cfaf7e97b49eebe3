// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_ENVIRONMENT_H
#define GIMLET_TOOLS_OSHRUN_ENVIRONMENT_H

#include <string>
#include <vector>

namespace gimlet::oshrun {

// Unsets what another PMIx launcher told this process: it is not about the job started here.
// Settings of the user (PMIX_MCA_...) stay.
void forget_outer_launcher();

// The variables a process is started with.
class Environment {
 public:
  // This process's own.
  static Environment inherited();

  // Sets one NAME=VALUE, replacing what NAME was.
  void set(std::string assignment);
  [[nodiscard]] std::string get(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;

  // For exec; valid until the next set().
  [[nodiscard]] std::vector<char*> pointers();

 private:
  std::vector<std::string> assignments_;
};

}  // namespace gimlet::oshrun

#endif
