#!/usr/bin/env bash
# Makes the files of the packages that the program writes itself or that differ by where
# the program is: man pages, completion, units.
# Usage: package-files.sh DIR [AGENT]; without AGENT the program is built.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
rm -rf "$out" && mkdir -p "$out/man" "$out/systemd"
agent=${2:-$out/agent}
[ $# -gt 1 ] || CGO_ENABLED=0 go build -trimpath -o "$agent" ./agent
"$agent" man --out "$out/man" >/dev/null
echo ".so man1/osupgrade-agent.1" >"$out/man/osupgrade-worker.1"
gzip -9n "$out"/man/*
for shell in bash zsh fish; do "$agent" completion "$shell" >"$out/$shell"; done
for unit in examples/systemd/*.service; do
	sed 's,/usr/local/bin/,/usr/bin/,' "$unit" >"$out/systemd/${unit##*/}"
done
cp examples/agent/serve.yaml "$out/serve.yaml"
gzip -9nc CHANGELOG.md >"$out/changelog.gz"
rm -f "$out/agent"
