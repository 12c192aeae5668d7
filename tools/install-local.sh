#!/usr/bin/env bash
# Installs the provider that was built here for the user who calls it, so that
# init of terraform and of tofu finds it without a registry:
#
#   tools/install-local.sh FOLDER
#
# FOLDER holds terraform-provider-osupgrade. Both programs look into
# ~/.terraform.d/plugins before they ask a registry, and no longer ask one for a
# provider that they find there. To undo it, remove the folders that are printed.
set -euo pipefail

provider=$1/terraform-provider-osupgrade
plugins=$HOME/.terraform.d/plugins
platform=$(go env GOOS)_$(go env GOARCH)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/main.tf" <<-TEXT
	terraform {
	  required_providers {
	    osupgrade = { source = "osupgrade/osupgrade" }
	  }
	}
TEXT

# address prints the full address of the provider, in which the programs differ.
address() {
	"$1" -chdir="$work" providers | sed -n 's/.*provider\[\([^]]*\)\].*/\1/p'
}

# install_as puts the provider into the folder of its address. Each build has a
# version of its own, greater than the one before, because a lock file holds the
# checksum of a version; it meets the constraint of the examples, ~> 0.1. A provider
# that did not change keeps its version.
install_as() {
	local home=$plugins/$1 old number last=0
	for old in "$home"/0.1.*/"$platform"/terraform-provider-osupgrade_v*; do
		if cmp -s "$provider" "$old"; then
			version=${old##*_v}
			return
		fi
		number=${old##*_v0.1.}
		if [[ $number =~ ^[0-9]+$ ]] && ((number > last)); then
			last=$number
		fi
	done
	number=$(date -u +%Y%m%d%H%M%S)
	version=0.1.$((number > last ? number : last + 1))
	rm -rf "$home"
	mkdir -p "$home/$version/$platform"
	cp "$provider" "$home/$version/$platform/terraform-provider-osupgrade_v$version"
}

found=
for cli in terraform tofu; do
	command -v "$cli" >/dev/null || continue
	found=yes
	name=$(address "$cli")
	[[ $name ]] || {
		echo "cannot install the provider: $cli providers does not name it" >&2
		exit 1
	}
	install_as "$name"
	rm -rf "$work/.terraform" "$work/.terraform.lock.hcl"
	if ! "$cli" -chdir="$work" init -input=false -no-color >"$work/log" 2>&1 ||
		! grep -qF "v$version" "$work/log"; then
		cat "$work/log" >&2
		cat >&2 <<-TEXT

			The provider is in $plugins/$name, but $cli does not take it from there.
			The likely cause is a provider_installation block in its configuration file
			(${TF_CLI_CONFIG_FILE:-$HOME/.${cli}rc}). Add this to the block, and call make install-local again:

			  filesystem_mirror {
			    path    = "$plugins"
			    include = ["osupgrade/osupgrade"]
			  }
		TEXT
		exit 1
	fi
	echo "Installed version $version for $cli: $plugins/$name"
done
[[ $found ]] || {
	echo "cannot install the provider: neither terraform nor tofu is on PATH." >&2
	exit 1
}
echo 'Where another build was installed before, run init -upgrade once.'
