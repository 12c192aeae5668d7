#!/usr/bin/env bash
# Makes the pages of the provider in docs/ from its schema, templates/ and examples/,
# without network and without a CLI. docs/guides is written by hand and stays:
#
#   tools/docs.sh write   makes docs/ anew
#   tools/docs.sh check   fails, and shows the difference, when docs/ is out of date
#
# Needs .cache/bin with tfplugindocs, as make builds it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=$PWD/.cache/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

generate() {
	go run ./provider/schemajson >"$work/schema.json"
	mkdir -p "$work/provider/docs"
	cp -R templates examples "$work/provider"
	# tfplugindocs makes docs/guides anew, too: to the letter of what it finds here.
	cp -R docs/guides "$work/provider/templates"
	"$bin/tfplugindocs" generate \
		--provider-dir "$work/provider" --provider-name osupgrade --rendered-provider-name osupgrade \
		--providers-schema "$work/schema.json" >"$work/log" || {
		cat "$work/log" >&2
		return 1
	}
	(cd tools && go run ./schemaonce "$work/provider/docs")
}

case ${1-} in
write)
	generate
	rm -rf docs
	cp -R "$work/provider/docs" docs
	;;
check)
	generate
	diff -ruN docs "$work/provider/docs" || {
		echo "docs/ is out of date; run: make generate" >&2
		exit 1
	}
	;;
*)
	echo "usage: tools/docs.sh write|check" >&2
	exit 2
	;;
esac
