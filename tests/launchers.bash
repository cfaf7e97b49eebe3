#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How the tests call the launchers, and what a launch has left behind; sourced.

# Open MPI's mpirun, the program $MPIRUN, as it works for root, on fewer cores than PEs and without
# a network.
# shellcheck disable=SC2034  # used by those that source this
by_mpirun=("${MPIRUN:-}" --oversubscribe --bind-to none --mca oob_tcp_if_include lo)
[[ $(id -u) != 0 ]] || by_mpirun+=(--allow-run-as-root)

# The processes, one a line, that have the word NAME=VALUE in their environment: a launch that is
# given such a mark passes it on to all that comes of it. A zombie has no environment, so that
# processes which nobody collects here are not counted.
marked_processes() { # MARK
  grep -lzxF -- "$1" /proc/[0-9]*/environ 2> /dev/null | tr -dc '0-9\n'
}

# Shows them and ends them.
end_marked_processes() { # MARK
  local -a left
  mapfile -t left < <(marked_processes "$1")
  ((${#left[@]} > 0)) || return 0
  ps -o pid,ppid,stat,wchan:20,args "${left[@]}"
  kill -KILL "${left[@]}" 2> /dev/null
  return 0
}
