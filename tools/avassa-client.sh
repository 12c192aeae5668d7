#!/usr/bin/env bash
# Avassa's own Python client, which the tests use against a site with TLS:
#
#   tools/avassa-client.sh install   put it into .cache/avassa-client, unless it is there
#   tools/avassa-client.sh missing   say if it is not there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=2026.6.2
there() { [ -d ".cache/avassa-client/avassa_client-$version.dist-info" ] && command -v python3 >/dev/null; }

case ${1:-} in
install)
	# Without its dependency, which only its message streams need.
	there || python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps --upgrade --target .cache/avassa-client "avassa-client==$version"
	;;
missing)
	there || echo "NOT TESTED: Avassa's Python client: it is not on this machine; run: tools/avassa-client.sh install"
	;;
*)
	sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | grep '^#' >&2
	exit 2
	;;
esac
