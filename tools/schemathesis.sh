#!/usr/bin/env bash
# Plays requests made from the OpenAPI text against a running agent, with schemathesis from
# the Python index: no answer may be 5xx, or other than the text says.
#
#   tools/schemathesis.sh CASES [OPTION...]    at most CASES requests of each kind an operation
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cases=$1
shift

venv=$PWD/.cache/schemathesis
version=4.32.5
if ! "$venv/bin/schemathesis" --version 2>/dev/null | grep -qF "$version"; then
	python3 -m venv --clear "$venv"
	"$venv/bin/pip" install --quiet "schemathesis==$version"
fi

work=$(mktemp -d)
agent=
finish() {
	if [[ -n $agent ]]; then
		kill "$agent" 2>/dev/null || true
		wait "$agent" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap finish EXIT

go build -o "$work/osupgrade-agent" ./agent
"$work/osupgrade-agent" dev --hosts 3 --data "$work/data" --listen 127.0.0.1:0 --action-time 100ms >"$work/out" 2>"$work/log" &
agent=$!
for _ in $(seq 300); do
	[[ ! -s $work/out ]] || break
	sleep 0.1
done
# shellcheck source=/dev/null
. "$work/data/dev.env"

# send METHOD PATH BODY prints the answer.
send() {
	curl --silent --show-error --fail-with-body --request "$1" "$OSUPGRADE_ENDPOINT$2" --data "$3" \
		--header "Authorization: Bearer $OSUPGRADE_TOKEN" --header 'Content-Type: application/json'
}
id() { python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])'; }

# There is an object for each name in a path, so that most requests find one.
send PUT /v1/config/os-upgrade '{"worker-applications": [{"name": "os-upgrade-simulated"}]}'
send PUT /v1/config/os-upgrade/rollout '{}'
send PUT /v1/config/os-upgrade/calendars/one '{"kind": "freeze"}'
send PUT /v1/config/strongbox/authentication/userpass/one '{"password": "correct horse battery", "token-policies": ["viewer"]}'
send PUT /v1/config/strongbox/authentication/approles/one '{"token-policies": ["viewer"]}'
send PUT /v1/config/policy/policies/one '{"rest-api": {"rules": [{"path": "/v1/state/**", "operations": {"read": "allow"}}]}}'
secret=$(send POST /v1/state/strongbox/authentication/approles/one/secret-ids '{}' | id)
token=$(send POST /v1/state/strongbox/tokens '{"name": "one", "allow": ["viewer"]}' | id)
join=$(send POST /v1/state/os-upgrade/join-tokens '{"host": "h09", "application": "os-upgrade-simulated"}' | id)
for _ in $(seq 100); do
	[[ $(send GET '/v1/state/os-upgrade/hosts?count=true' '') != 3 ]] || break
	sleep 0.1
done
run=$(send POST /v1/state/os-upgrade/start '{"override-window": true, "reason": "schemathesis"}' | id)
for _ in $(seq 300); do
	! send GET "/v1/state/os-upgrade/runs/$run" '' | grep -q '"result"' || break
	sleep 0.1
done

cat >"$work/schemathesis.toml" <<TOML
headers = { Authorization = "Bearer $OSUPGRADE_TOKEN" }

[parameters]
"path.tenant" = "$OSUPGRADE_TENANT"
"path.host" = "h01"
"path.name" = "one"
"query.site" = "dev"

[[operations]]
include-path-regex = "/runs/"
parameters = { "path.id" = $run }

[[operations]]
include-path-regex = "/tokens/"
parameters = { "path.id" = "$token" }

[[operations]]
include-path-regex = "/join-tokens/"
parameters = { "path.id" = "$join" }

[[operations]]
include-path-regex = "/secret-ids/"
parameters = { "path.id" = "$secret" }
TOML

# The event stream goes on until the client goes, and the host that is read is not deleted.
"$venv/bin/schemathesis" --config-file "$work/schemathesis.toml" run "$OSUPGRADE_ENDPOINT/v1/openapi.json" \
	--checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance \
	--exclude-path-regex '/events$' \
	--max-examples "$cases" --request-timeout 30 --continue-on-failure "$@" || {
	status=$?
	tail -n 20 "$work/log" >&2
	exit "$status"
}
