#!/usr/bin/env bash
# The promtool with which the tests check examples/monitoring:
#
#   tools/promtool.sh install   take it out of the Debian package prometheus into .cache/bin, unless there is one
#   tools/promtool.sh missing   say so, if there is none
#
# The package is not installed: that would start a server on this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
there() { [ -x .cache/bin/promtool ] || command -v promtool >/dev/null; }

case ${1:-} in
install)
	! there || exit 0
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	[ "$(id -u)" != 0 ] || apt-get -q update >/dev/null
	(cd "$work" && apt-get -q -o APT::Sandbox::User=root download prometheus >/dev/null && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool)
	mkdir -p .cache/bin
	mv "$work/usr/bin/promtool" .cache/bin/promtool
	;;
missing)
	there || echo "NOT TESTED: examples/monitoring: there is no promtool on this machine; run: tools/promtool.sh install"
	;;
*)
	sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | grep '^#' >&2
	exit 2
	;;
esac
