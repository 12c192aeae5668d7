#!/usr/bin/env bash
# The programs of Prometheus with which the tests check examples/monitoring and examples/news:
#
#   tools/prometheus.sh install   take them out of their Debian packages into .cache/bin, unless they are there
#   tools/prometheus.sh missing   say which are not there
#
# The packages are not installed: that would start servers on this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
there() { [ -x ".cache/bin/$1" ] || { [ "$1" = promtool ] && command -v "$1" >/dev/null; }; }

# take PACKAGE PROGRAM [FOLDER]: takes one program out of a package, and a folder that it reads.
take() {
	! there "$2" || return 0
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	[ "$(id -u)" != 0 ] || apt-get -q update >/dev/null
	(cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$1" >/dev/null && dpkg-deb --fsys-tarfile "$1"_*.deb | tar -x "./usr/bin/$2" ${3:+"./$3"})
	mkdir -p .cache/bin
	if [ -n "${3:-}" ]; then rm -rf ".cache/$2" && mv "$work/$3" ".cache/$2"; fi
	mv "$work/usr/bin/$2" ".cache/bin/$2"
	rm -rf "$work"
}

case ${1:-} in
install)
	take prometheus promtool
	take prometheus-alertmanager prometheus-alertmanager usr/share/prometheus/alertmanager
	;;
missing)
	there promtool || echo "NOT TESTED: examples/monitoring: there is no promtool on this machine; run: tools/prometheus.sh install"
	there prometheus-alertmanager || echo "NOT TESTED: examples/news with Alertmanager: it is not on this machine; run: tools/prometheus.sh install"
	;;
*)
	sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | grep '^#' >&2
	exit 2
	;;
esac
