#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the tests of the launcher share; sourced by each. Runs the launcher in a folder of its own,
# keeps what it printed, and at the end looks for processes and files that were left behind.
set -u
# shellcheck source-path=SCRIPTDIR source=../launchers.bash
. "$(dirname -- "${BASH_SOURCE[0]}")/../launchers.bash"

# shellcheck disable=SC2034  # used by the tests
client=$PWD/tests/launch/pmix_client
: "${OSHRUN:=$PWD/tools/oshrun/oshrun}"
[[ -x $OSHRUN && -x $client ]] || { echo "there is no $OSHRUN or no $client"; exit 99; }
folder=$(mktemp -d /tmp/gimlet-launch.XXXXXX) || exit 99
mkdir "$folder/tmp"
mark=GIMLET_TEST_MARK=launch.$$
# Each launcher has the mark in its environment, and so have all processes that come of it.
marked=(env '--default-signal=INT,QUIT' "$mark" "TMPDIR=$folder/tmp")
# libpmix keeps memory until the end of a process.
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
unset SLURM_JOB_ID PBS_NODEFILE LSB_JOBID GIMLET_OSHRUN_HANDOVER
cd -- "$folder" || exit 99

out=$folder/out err=$folder/err status=0 failures=0

complain() {
  printf 'FAILED: %s\n' "$*"
  failures=$((failures + 1))
}

# The launcher, under a timeout.
launch() { # ARGUMENT...
  "${marked[@]}" timeout -k 2 30 "$OSHRUN" "$@"
}

# The same; leaves its exit status in $status and what it wrote in the files $out and $err.
oshrun() { # ARGUMENT...
  launch "$@" > "$out" 2> "$err"
  status=$? last="oshrun $*"
}

# The launcher itself in the background, its process in $launcher; collect it with `finished`.
start() { # ARGUMENT...
  "${marked[@]}" "$OSHRUN" "$@" <&0 > "$out" 2> "$err" &
  launcher=$! last="oshrun $* &"
}

finished() {
  wait "$launcher"
  status=$?
}

show() {
  printf -- '--- %s: status %s\n' "$last" "$status"
  sed 's/^/out: /' "$out" | head -n 20
  sed 's/^/err: /' "$err" | head -n 20
}

expect_status() { # STATUS
  [[ $status == "$1" ]] && return
  complain "status is $status, not $1"
  show
}

expect_out() { # TEXT: the whole output
  [[ $(< "$out") == "$1" ]] && return
  complain "the output is not: $1"
  show
}

expect_sorted_out() { # TEXT: the whole output, in whatever order the PEs wrote their lines
  [[ $(sort "$out") == "$1" ]] && return
  complain "the output in order is not: $1"
  show
}

expect_err() { # REGULAR-EXPRESSION: one line of the errors, wholly
  grep -qxE -- "$1" "$err" && return
  complain "no line of the errors is: $1"
  show
}

expect_err_lines() { # NUMBER
  [[ $(wc -l < "$err") == "$1" ]] && return
  complain "there are not $1 lines of errors"
  show
}

# Waits until the command succeeds; fails after 10 s.
eventually() { # COMMAND...
  local try
  for ((try = 0; try < 200; ++try)); do
    "$@" && return 0
    sleep 0.05
  done
  return 1
}

has_lines() { # FILE NUMBER
  [[ -f $1 ]] && (($(wc -l < "$1") >= $2))
}

nothing_left() {
  [[ -z $(marked_processes "$mark") && -z $(ls -A "$folder/tmp") ]]
}

finish() {
  if ! eventually nothing_left; then
    complain "processes or files were left behind"
    ls -lAR "$folder/tmp"
    end_marked_processes "$mark"
  fi
  cd / && rm -rf -- "$folder"
  ((failures == 0))
  exit
}

skip() {
  printf 'skipped: %s\n' "$*"
  cd / && rm -rf -- "$folder"
  exit 77
}
