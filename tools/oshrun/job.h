// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TOOLS_OSHRUN_JOB_H
#define GIMLET_TOOLS_OSHRUN_JOB_H

#include <optional>
#include <string>
#include <vector>

#include "input.h"
#include "options.h"
#include "output.h"
#include "poll_set.h"
#include "process_table.h"
#include "server.h"
#include "session.h"
#include "signals.h"
#include "starter.h"
#include "upcall_queue.h"

namespace gimlet::oshrun {

// Runs the PEs from the first start to the last exit and decides how the job ends.
class Job {
 public:
  Job(const Options& options, const Starter& starter, Session& session, Signals& signals,
      PmixServer& server, UpcallQueue& upcalls);

  // The job's exit code: that of the first PE that failed, or 0.
  int run();

  // A sentence on standard error before, while or after the PEs run.
  void say(const std::string& sentence) { output_.say(sentence); }

 private:
  // A PE that exited with 0 while connected. Its goodbye may still be on its way to us.
  struct Suspect {
    Pe* pe;
    Clock::time_point until;
  };

  // Why the job is to end. A PE often fails because it noticed another one's death, and its exit
  // may be seen first: the sentence should name the cause.
  struct Failure {
    Pe* pe;
    int exit_code;
    std::string sentence;
    Clock::time_point until;  // how long a better explanation may still come
  };

  void start_all();
  void round();
  void take_signals();
  void take_upcalls();
  void take_ended();
  void judge(Pe& pe);
  void judge_suspects();
  void report_death(Pe& pe, int exit_code, const std::string& what);
  void consider_failure(Pe& pe, int exit_code, const std::string& sentence);
  void go_on_without(Pe& pe, int exit_code, const std::string& what);
  void end_failed_job();
  void abort_job(Pe& pe, int status, const std::string& text);
  void end_job(int exit_code, int signal);
  void check_deadlines();
  void check_output();
  void drain(std::chrono::milliseconds limit);
  void flush();
  void finish();
  [[nodiscard]] std::optional<Clock::time_point> next_deadline() const;

  const Options& options_;
  const Starter& starter_;
  Session& session_;
  Signals& signals_;
  PmixServer& server_;
  UpcallQueue& upcalls_;
  ProcessTable table_;
  OutputForwarder output_;
  TerminalInput input_;
  std::vector<Suspect> suspects_;
  std::optional<Failure> failure_;
  std::optional<Clock::time_point> timeout_at_;
  std::optional<Clock::time_point> kill_at_;
  bool is_ending_ = false;
  bool is_hurried_ = false;  // somebody asked the launcher to end: output may be cut short
  int exit_code_ = 0;
};

}  // namespace gimlet::oshrun

#endif
