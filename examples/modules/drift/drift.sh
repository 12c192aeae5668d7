#!/usr/bin/env bash
# Finds out whether the server still has what a Terraform configuration declares:
#
#   drift.sh REPORT [OPTION OF terraform plan...]
#
# Exit code 0: it has. 2: it has not, and REPORT tells what differs. 1: that could not be
# found out. Checks that fail are in REPORT, too, but are no drift. CLI names another
# program than terraform, such as tofu. Run init before.
set -euo pipefail
cli=${CLI:-terraform}
report=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# messages SEVERITY prints the diagnostics in the log of the CLI, as text.
messages() {
	sed -n 's/.*"diagnostic":{"severity":"'"$1"'","summary":"\(\([^"\\]\|\\.\)*\)","detail":"\(\([^"\\]\|\\.\)*\)".*/\1\\n\3\\n\\n/p' "$work/log" |
		while IFS= read -r line; do printf '%b' "${line//\\\"/\"}"; done
}

# No lock: this writes nothing, and a check that runs by itself must not be in the way.
code=0
"$cli" plan -input=false -lock=false -detailed-exitcode -json -out="$work/plan" "$@" >"$work/log" || code=$?
if ((code != 0 && code != 2)); then
	messages error >&2
	exit 1
fi
messages warning >"$report"

# 2 says that the plan is not empty. It is so, too, if it only changes an output that
# depends on the time, or reads a data source of a check block. Drift is what the plan
# would add, change or remove; the CLI counts that.
changes=$(sed -n '/"type":"change_summary"/s/.*"changes":{\([^}]*\)}.*/\1/p' "$work/log")
if [[ $code == 2 && -z $changes ]]; then
	echo "drift.sh: $cli plan -json has printed no change_summary" >&2
	exit 1
fi
[[ $changes =~ :[1-9] ]] || exit 0
"$cli" show -no-color "$work/plan" >>"$report"
exit 2
