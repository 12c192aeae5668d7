#!/usr/bin/env bash
# Makes docs/ from the provider's schema, templates/ and examples/, without
# network:
#
#   tools/cli.sh tools/docs.sh write   makes docs/ anew
#   tools/cli.sh tools/docs.sh check   fails, and shows the difference, when docs/ is out of date
#
# Needs .cache/bin with the provider and tfplugindocs, as make builds them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=$PWD/.cache/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

schema() {
	mkdir "$work/schema"
	tools/dev-overrides.sh "$bin" >"$work/cli.rc"
	cat >"$work/schema/main.tf" <<-TEXT
		terraform {
		  required_providers {
		    osupgrade = { source = "osupgrade/osupgrade" }
		  }
		}
	TEXT
	# tfplugindocs knows a provider by its short name or as one of HashiCorp's.
	TF_CLI_CONFIG_FILE=$work/cli.rc "$TF_ACC_TERRAFORM_PATH" -chdir="$work/schema" providers schema -json |
		sed 's#"[^"/]*/osupgrade/osupgrade"#"osupgrade"#' >"$work/schema.json"
}

generate() {
	mkdir -p "$work/provider/docs"
	cp -R templates examples "$work/provider"
	# What tfplugindocs does not make, such as a page written by hand, stays.
	[[ ! -d docs ]] || cp -R docs "$work/provider"
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
	schema
	generate
	rm -rf docs
	cp -R "$work/provider/docs" docs
	;;
check)
	schema
	generate
	diff -ruN docs "$work/provider/docs" || {
		echo "docs/ is out of date; run: make docs" >&2
		exit 1
	}
	;;
*)
	echo "usage: tools/cli.sh tools/docs.sh write|check" >&2
	exit 2
	;;
esac
