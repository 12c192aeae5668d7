#!/usr/bin/env bash
# Measures how a site's folder grows: plays runs over simulated hosts and prints
# the bytes of the store after each of them.
#
#   tools/disk.sh HOSTS RUNS
#
# Needs .cache/bin/osupgrade-agent, as make build makes it, and curl.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hosts=$1 runs=$2
agent=${AGENT:-$PWD/.cache/bin/osupgrade-agent}
dir=$(mktemp -d)
"$agent" dev --hosts "$hosts" --data "$dir" --listen 127.0.0.1:0 --action-time 0s >"$dir/log" 2>&1 &
site=$!
trap 'kill "$site"; wait "$site" || true; rm -rf "$dir"' EXIT
until [[ -f $dir/dev.env ]]; do sleep 0.2; done
# shellcheck source=/dev/null
. "$dir/dev.env"

put() {
	curl -sSf -X PUT -H "Authorization: Bearer $OSUPGRADE_TOKEN" -H 'Content-Type: application/json' --data-binary "$2" \
		"$OSUPGRADE_ENDPOINT/v1/config/tenants/$OSUPGRADE_TENANT/os-upgrade$1"
}
put '' '{"worker-applications": [{"name": "os-upgrade-simulated"}]}'
put /rollout '{"stages": [{"name": "all", "max-unavailable": "100%"}]}'

# bytes adds up the files of the store whose path matches a pattern.
bytes() { find "$dir/store" -type f -path "$1" -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'; }

printf 'run\tlog\thistory\thosts\tall (bytes)\n'
for ((run = 1; run <= runs; run++)); do
	until "$agent" start --override-window --reason 'measure the disk' --wait >"$dir/run" 2>&1; do
		grep -q 'is not finished\|online' "$dir/run" || { cat "$dir/run" >&2; exit 1; }
		sleep 0.5
	done
	sleep 0.5 # The history and the versions are written after the end.
	printf '%s\t%s\t%s\t%s\t%s\n' "$run" "$(bytes '*/OSU_*.blk')" "$(bytes '*/osu-runs*.blk')" "$(bytes '*/KV_*.blk')" "$(bytes '*')"
done
