#!/usr/bin/env bash
# Builds the deb and rpm packages of the agent, as .goreleaser.yaml describes them.
# Usage: packages.sh DIR VERSION ARCH...; AGENT and WORKER name programs to
# pack for all architectures instead of building them for each (for tests).
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1" && out=$(cd "$1" && pwd) version=$2
shift 2
# .goreleaser.yaml names the generated files by this path.
files=.cache/packages/files
for arch; do
	mkdir -p "$out/bin/$arch"
	if [ -n "${AGENT:-}" ]; then
		cp "$AGENT" "$out/bin/$arch/osupgrade-agent"
		cp "$WORKER" "$out/bin/$arch/osupgrade-worker"
	else
		for program in osupgrade-agent osupgrade-worker; do
			tags=
			[ $program = osupgrade-agent ] || tags=worker
			GOARCH=$arch CGO_ENABLED=0 go build -trimpath -tags "$tags" -ldflags "-s -w -X main.version=$version" -o "$out/bin/$arch/$program" ./agent
		done
	fi
done
tools/package-files.sh "$files" "${AGENT:-$out/bin/$(go env GOARCH)/osupgrade-agent}"
rm -f "$out"/*.deb "$out"/*.rpm
# The time in the packages, so that the same commit gives the same packages: what
# goreleaser has as CommitDate.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
(cd tools/packages && go run . -root ../.. -version "$version" -out "$out" "$@")
