#!/usr/bin/env bash
# Says what make is at, and at the end how long that took:
#
#   tools/step.sh TARGET TEXT...   a step begins
#   tools/step.sh all              the steps of make test begin
#   tools/step.sh end              no step begins
#   tools/step.sh took             say how long each of them took
#
# STEPS is the file that keeps the steps: tools/beside.sh names another one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
steps=${STEPS:-.cache/steps}
beside=.cache/steps-beside

# shown FILE prints how long each step in a file took.
shown() {
	awk '
		NR > 1 { printf "%5ds  %s\n", $1 - began, what }
		{ began = $1; what = substr($0, index($0, " ") + 1) }
	' "$1"
}

mkdir -p .cache
case $1 in
all)
	: >"$steps"
	rm -f "$beside"
	;;
end) echo "$(date +%s) end" >>"$steps" ;;
took)
	echo "$(date +%s) end" >>"$steps"
	shown "$steps"
	if [ -f "$beside" ]; then
		echo "beside them:"
		shown "$beside"
	fi
	awk 'NR == 1 { first = $1 } END { printf "%5ds  all of it\n", $1 - first }' "$steps"
	;;
*)
	target=$1
	shift
	echo "make $target: $*"
	echo "$(date +%s) $target: $*" >>"$steps"
	;;
esac
