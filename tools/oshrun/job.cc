// SPDX-License-Identifier: BSD-3-Clause
#include "job.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "launch_error.h"

namespace gimlet::oshrun {
namespace {

using std::chrono::milliseconds;

// From the polite signal to SIGKILL: with it a job is over within 2 s of a PE's death.
constexpr milliseconds kKillDelay(1500);
// How long a PE that exited with an error waits for a PE that was killed, to be named in its place.
constexpr milliseconds kCauseWait(100);
// How long a PE's goodbye to the PMIx server may come after its exit.
constexpr milliseconds kGoodbyeWait(300);
// How long helpers that a PE left behind may go on writing after the last PE.
constexpr milliseconds kHelperWait(250);
// How long the streams of killed processes may take to close.
constexpr milliseconds kCloseWait(100);
// How long a reader that stands still may hold up a launcher that was told to end.
constexpr milliseconds kHurriedFlush(500);

std::string name_of(const Pe& pe) {
  return fmt::format("PE {} (pid {}, {})", pe.number, pe.pid, pe.program);
}

// An exit code holds 8 bits; a failure must not look like success for lack of them.
int exit_code_of_abort(int status) {
  const int code = status & 0xff;
  return status != 0 && code == 0 ? 1 : code;
}

}  // namespace

Job::Job(const Options& options, const Starter& starter, Session& session, Signals& signals,
         PmixServer& server, UpcallQueue& upcalls)
    : options_(options),
      starter_(starter),
      session_(session),
      signals_(signals),
      server_(server),
      upcalls_(upcalls),
      table_(session),
      output_(options.tag_output, starter.pes().size() > 1) {
  table_.pes() = starter.pes();
}

int Job::run() {
  try {
    start_all();
  } catch (...) {
    table_.reap_all();
    throw;
  }
  while (table_.running() > 0 || !suspects_.empty()) round();
  end_failed_job();
  finish();
  return exit_code_;
}

void Job::start_all() {
  // Counted from before the first start, as a limit on the whole job.
  if (options_.timeout_seconds) {
    timeout_at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(*options_.timeout_seconds));
  }
  for (Pe& pe : table_.pes()) {
    starter_.start(pe, session_, server_, signals_.original(), output_, input_);
    table_.start(pe);
    if (options_.verbose) say(name_of(pe) + " has been started");
  }
}

void Job::round() {
  PollSet set;
  set.watch(signals_.fd(), POLLIN, [this] { take_signals(); });
  set.watch(upcalls_.fd(), POLLIN, [this] { take_upcalls(); });
  output_.watch(set);
  input_.watch(set);
  set.wait(next_deadline());
  output_.after_wait();
  check_output();
  check_deadlines();
  judge_suspects();
}

std::optional<Clock::time_point> Job::next_deadline() const {
  std::optional<Clock::time_point> first = earlier(output_.deadline(), kill_at_);
  if (!is_ending_) first = earlier(first, timeout_at_);
  if (failure_ && !is_ending_) first = earlier(first, failure_->until);
  for (const Suspect& suspect : suspects_) first = earlier(first, suspect.until);
  return first;
}

void Job::take_signals() {
  bool has_ended = false;
  for (const int signal : signals_.take()) {
    switch (signal) {
      case SIGCHLD:
        has_ended = true;
        break;
      case SIGUSR1:
      case SIGUSR2:
      case SIGCONT:
        table_.signal_groups(signal);
        break;
      case SIGTSTP:
        table_.signal_groups(SIGTSTP);
        raise(SIGSTOP);  // until SIGCONT, which then comes as a signal to pass on
        break;
      default:
        is_hurried_ = true;
        if (is_ending_) {
          table_.signal_groups(SIGKILL);
        } else {
          say(fmt::format("received {}; ending the job", signal_text(signal)));
          end_job(128 + signal, signal);
        }
    }
  }
  if (has_ended) take_ended();
}

void Job::take_upcalls() {
  for (const Upcall& upcall : upcalls_.take()) {
    Pe& pe = table_.pes()[static_cast<std::size_t>(upcall.pe)];
    switch (upcall.kind) {
      case Upcall::Kind::kConnected:
        pe.is_connected = true;
        break;
      case Upcall::Kind::kFinalized:
        pe.is_connected = false;
        break;
      case Upcall::Kind::kAborted:
        abort_job(pe, upcall.status, upcall.text);
    }
  }
}

void Job::take_ended() {
  const std::vector<Pe*> ended = table_.take_ended();
  // A PE's last words come before its exit, so that they are all here once the exit has been seen.
  take_upcalls();
  for (Pe* pe : ended) judge(*pe);
}

void Job::judge(Pe& pe) {
  if (pe.exit_code == 0 && pe.is_connected) {
    suspects_.push_back({&pe, Clock::now() + kGoodbyeWait});
  } else if (pe.kill_signal != 0) {
    report_death(pe, pe.exit_code, fmt::format("was killed by {}", signal_text(pe.kill_signal)));
  } else if (pe.exit_code != 0) {
    report_death(pe, pe.exit_code, fmt::format("exited with status {}", pe.exit_code));
  }
}

void Job::judge_suspects() {
  const Clock::time_point now = Clock::now();
  for (const Suspect& suspect : suspects_) {
    if (suspect.pe->is_connected && (now >= suspect.until || is_ending_)) {
      report_death(*suspect.pe, 1, "exited without finalizing");
    }
  }
  std::erase_if(suspects_, [&](const Suspect& suspect) {
    return !suspect.pe->is_connected || now >= suspect.until || is_ending_;
  });
}

void Job::report_death(Pe& pe, int exit_code, const std::string& what) {
  if (is_ending_) return;
  if (options_.keep_going) {
    go_on_without(pe, exit_code, what);
  } else {
    consider_failure(pe, exit_code, fmt::format("{} {}; ending the job", name_of(pe), what));
  }
}

void Job::consider_failure(Pe& pe, int exit_code, const std::string& sentence) {
  if (is_ending_) return;
  const bool is_killed = pe.kill_signal != 0;
  const bool explains = failure_ && is_killed && failure_->pe != &pe;
  if (!failure_ || explains) failure_ = {&pe, exit_code, sentence, Clock::now() + kCauseWait};
  if (is_killed) end_failed_job();
}

void Job::go_on_without(Pe& pe, int exit_code, const std::string& what) {
  say(fmt::format("{} {}; the others go on", name_of(pe), what));
  if (exit_code_ == 0) exit_code_ = exit_code;
  server_.notify_death(pe.number, exit_code, pe.kill_signal != 0);
}

void Job::end_failed_job() {
  if (!failure_ || is_ending_) return;
  say(failure_->sentence);
  end_job(failure_->exit_code, SIGTERM);
}

void Job::abort_job(Pe& pe, int status, const std::string& text) {
  if (status == 0) {
    end_job(0, SIGTERM);  // a normal way to end the job, so without comment
    return;
  }
  consider_failure(pe, exit_code_of_abort(status),
                   fmt::format("{} ended the job with status {}{}{}", name_of(pe), status,
                               text.empty() ? "" : ": ", text));
}

void Job::end_job(int exit_code, int signal) {
  if (is_ending_) return;
  is_ending_ = true;
  exit_code_ = exit_code;
  kill_at_ = Clock::now() + kKillDelay;
  table_.signal_groups(signal);
  table_.signal_groups(SIGCONT);  // a stopped process takes no other signal
}

void Job::check_deadlines() {
  const Clock::time_point now = Clock::now();
  if (failure_ && now >= failure_->until) end_failed_job();
  if (kill_at_ && now >= *kill_at_) {
    table_.signal_groups(SIGKILL);
    kill_at_ = now + kKillDelay;  // once more for what was forked meanwhile
  }
  if (!is_ending_ && timeout_at_ && now >= *timeout_at_) {
    std::vector<int> running;
    for (const Pe& pe : table_.pes()) {
      if (pe.is_running) running.push_back(pe.number);
    }
    say(
        fmt::format("the job ran for more than the --timeout of {} s and PEs {} still ran; ending "
                    "the job",
                    *options_.timeout_seconds, range_text(running)));
    is_hurried_ = true;
    end_job(kExitTimeout, SIGTERM);
  }
}

void Job::check_output() {
  if (is_ending_ || output_.error() == 0) return;
  // The reader of a pipe went away: end as a program in its place would, by SIGPIPE.
  if (output_.error() != EPIPE) {
    say(fmt::format("cannot write to standard output: {}; ending the job",
                    errno_text(output_.error())));
  }
  end_job(output_.error() == EPIPE ? 128 + SIGPIPE : kExitLauncher, SIGTERM);
}

void Job::drain(milliseconds limit) {
  const Clock::time_point until = Clock::now() + limit;
  while (output_.has_sources() && Clock::now() < until && !is_hurried_) {
    PollSet set;
    set.watch(signals_.fd(), POLLIN, [this] { take_signals(); });
    output_.watch(set);
    set.wait(until);
    output_.after_wait();
  }
}

void Job::flush() {
  std::optional<Clock::time_point> until;
  while (output_.has_pending()) {
    // Without a hurry a reader may be as slow as it likes (somebody paging through the output).
    if (is_hurried_ && !until) until = Clock::now() + kHurriedFlush;
    if (until && Clock::now() >= *until) return;
    PollSet set;
    set.watch(signals_.fd(), POLLIN, [this] { take_signals(); });
    output_.watch(set);
    set.wait(until);
  }
}

void Job::finish() {
  if (!is_ending_) drain(kHelperWait);
  table_.reap_all();
  is_ending_ = true;
  drain(kCloseWait);
  output_.close_sources();
  flush();
  if (options_.gdb_pe && isatty(STDIN_FILENO) != 0) tcsetpgrp(STDIN_FILENO, getpgrp());
}

}  // namespace gimlet::oshrun
