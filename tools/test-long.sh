#!/usr/bin/env bash
# The tests for which make test has no time:
#
#   tools/cli.sh tools/test-long.sh FUZZTIME SEEDS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fuzztime=$1
seeds=$2

# The tests on real hosts have a turn of their own.
export REALHOST=off
tools/realhost.sh missing long

echo "go.mod and go.sum are tidy (asks for modules that only tests of others need)"
go mod tidy -diff
(cd tools && go mod tidy -diff)

echo "all tests, three times in random order"
go test -count=3 -shuffle=on -timeout=1h ./...
mapfile -t packages < <(go list ./... | grep -v -e "/agent/host/worker$" -e "/agent/testing/sim$")
go test -race -shuffle=on -timeout=1h "${packages[@]}"

echo "deliberate faults, each of which a test must catch"
(cd tools && go run ./mutants)

echo "the kill matrix with 100 rounds each, and power cuts"
OSUPGRADE_LONG=1 go test -race -count=1 -v -timeout=4h -run='^(TestCrashMatrix|TestCrashMatrixSideBySide|TestCrashMatrixRollback|TestPowerCuts|TestSealIsKilled)$' ./agent/e2e

echo "10,000 hostile connections; the order of writes over 40 kills"
OSUPGRADE_LONG=1 go test -race -count=1 -v -timeout=1h -run='^(TestHostileConnections|TestConfigIsLinearizable)$' ./agent/e2e

echo "requests made from the OpenAPI text (asks the Python index for schemathesis the first time)"
tools/schemathesis.sh 20

echo "real hosts: power cuts by the dozen, release upgrade, A/B images"
tools/realhost.sh test long 4h

# Only packages that import rapid know its flags.
mapfile -t properties < <(go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... |
	awk '/pgregory.net\/rapid/ {print $1}')
if ((${#properties[@]})); then
	echo "property tests with 10,000 cases each"
	go test -count=1 -timeout=1h "${properties[@]}" -rapid.checks=10000
fi

while IFS=: read -r file name; do
	echo "fuzz $name of $(dirname "$file") for $fuzztime"
	go test -run='^$' -fuzz="^$name\$" -fuzztime="$fuzztime" "./$(dirname "$file")" </dev/null
done < <(grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/func //; s/^\.\///')

echo "four weeks of the real embedded server"
go test ./agent/testing/sim -run TestRealServer -count=1 -timeout=1h -sim.weeks=5

echo "the simulation from $seeds seeds that make test does not play"
go test ./agent/testing/sim -run TestSimulation -count=1 -timeout=6h -sim.first=10001 -sim.seeds="$seeds"
