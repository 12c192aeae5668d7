#!/usr/bin/env bash
# Makes a target while others are made in turn:
#
#   tools/beside.sh TARGET OTHER...
#
# TARGET runs at a low priority, and what it prints is shown at its end. If another one
# fails, TARGET is stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$1
shift
log=.cache/beside.log
mkdir -p .cache

echo "make $target: at a low priority, beside $*"
# It is a session of its own, so that all of it can be stopped. Where the kernel weighs whole
# sessions against each other (autogroup of sched(7)), this one gives way to all others.
# shellcheck disable=SC2016 # $0 is of the shell that it starts
STEPS=.cache/steps-beside setsid nice -n 10 bash -c '{ echo 10 >/proc/self/autogroup; } 2>/dev/null || true; exec make "$0"' "$target" >"$log" 2>&1 &
beside=$!
trap 'kill -- "-$beside" "$beside" 2>/dev/null || true' EXIT

make "$@"
tools/step.sh beside "wait for $target"
failed=0
wait "$beside" || failed=$?
trap - EXIT
STEPS=.cache/steps-beside tools/step.sh end
cat "$log"
exit "$failed"
