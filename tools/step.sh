#!/usr/bin/env bash
# Says what make is at, and at the end how long that took:
#
#   tools/step.sh TARGET TEXT...   a step begins
#   tools/step.sh all              the steps of make test begin
#   tools/step.sh took             say how long each of them took
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
steps=.cache/steps

mkdir -p .cache
case $1 in
all) : >"$steps" ;;
took)
	echo "$(date +%s) end" >>"$steps"
	awk '
		NR > 1 { printf "%5ds  %s\n", $1 - began, what }
		{ began = $1; if (NR == 1) first = $1; what = substr($0, index($0, " ") + 1) }
		END { printf "%5ds  all of it\n", began - first }
	' "$steps"
	;;
*)
	target=$1
	shift
	echo "make $target: $*"
	echo "$(date +%s) $target: $*" >>"$steps"
	;;
esac
