#!/usr/bin/env bash
# Makes some targets while others are made:
#
#   tools/beside.sh TARGET... -- OTHER...
#
# The targets are made in turn at a low priority, and what they print is shown at their end.
# The others are made in turn. If one of those fails, the targets are stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
targets=()
while [ "$1" != -- ]; do
	targets+=("$1")
	shift
done
shift
log=.cache/beside.log
mkdir -p .cache

echo "make ${targets[*]}: at a low priority, beside $*"
# It is a session of its own, so that all of it can be stopped. Where the kernel weighs whole
# sessions against each other (autogroup of sched(7)), this one gives way to all others.
# shellcheck disable=SC2016 # $@ is of the shell that it starts
STEPS=.cache/steps-beside setsid nice -n 10 bash -c '{ echo 10 >/proc/self/autogroup; } 2>/dev/null || true; exec make "$@"' beside "${targets[@]}" >"$log" 2>&1 &
beside=$!
trap 'kill -- "-$beside" "$beside" 2>/dev/null || true' EXIT

make "$@"
tools/step.sh beside "wait for ${targets[*]}"
failed=0
wait "$beside" || failed=$?
trap - EXIT
STEPS=.cache/steps-beside tools/step.sh end
cat "$log"
exit "$failed"
