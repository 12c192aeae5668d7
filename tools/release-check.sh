#!/usr/bin/env bash
# Makes the release of .goreleaser.yaml on this machine, for its platform alone and signed
# by a key that is thrown away, and checks what a registry and a user would check:
#
#   tools/release-check.sh
#
# Needs goreleaser, gpg, unzip, dpkg-deb, rpm, and terraform or tofu on PATH. Nothing is
# published. goreleaser may be in .cache/bin, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PWD/.cache/bin:$PATH

for program in goreleaser gpg unzip dpkg-deb rpm; do
	command -v $program >/dev/null || {
		# Its first build takes long: it has the clients of many services.
		echo "release-check needs $program on PATH. goreleaser: GOBIN=$PWD/.cache/bin go install github.com/goreleaser/goreleaser/v2@v2.13.0" >&2
		exit 1
	}
done
cli=$(command -v terraform || command -v tofu) || {
	echo "release-check needs terraform or tofu on PATH" >&2
	exit 1
}
goreleaser check

work=$(mktemp -d)
trap 'gpgconf --homedir "$work/gnupg" --kill all; rm -rf "$work"' EXIT
export GNUPGHOME=$work/gnupg GPG_FINGERPRINT
mkdir -m 700 "$GNUPGHOME"
# A registry of providers takes RSA.
gpg --batch --quiet --passphrase '' --quick-generate-key release-check@osupgrade.example rsa3072 sign 1d
GPG_FINGERPRINT=$(gpg --batch --with-colons --list-keys | sed -n 's/^fpr:*\([0-9A-F]*\):$/\1/p' | head -1)

# The platforms of the release take an hour on a small machine; one shows the rest.
os=$(go env GOOS) arch=$(go env GOARCH)
sed -e "s/^\( *goos:\).*/\1 [$os]/; s/^\( *goarch:\).*/\1 [$arch]/" -e '/^ *ignore:/,/^  - id/{/ignore:\|goos: darwin\|goos: windows/d}' .goreleaser.yaml >"$work/goreleaser.yaml"
goreleaser release --config "$work/goreleaser.yaml" --snapshot --clean --skip=publish,sbom

cd dist
sums=$(echo terraform-provider-osupgrade_*_SHA256SUMS)
version=${sums#terraform-provider-osupgrade_}
version=${version%_SHA256SUMS}
gpg --batch --verify "$sums.sig" "$sums"
# The manifest is renamed as it is published.
cp ../terraform-registry-manifest.json "terraform-provider-osupgrade_${version}_manifest.json"
sha256sum --quiet --check "$sums"
for name in "terraform-provider-osupgrade_${version}_${os}_$arch.zip" "terraform-provider-osupgrade_${version}_manifest.json" \
	"osupgrade-agent_${version}_${os}_$arch".{tar.gz,deb,rpm}; do
	grep -q "  $name\$" "$sums" || {
		echo "$sums does not name $name:" >&2
		cat "$sums" >&2
		exit 1
	}
done
unzip -q "terraform-provider-osupgrade_${version}_${os}_$arch.zip" -d "$work/zip"
[[ -x $work/zip/terraform-provider-osupgrade_v$version ]] || {
	echo "the zip has no terraform-provider-osupgrade_v$version:" >&2
	ls "$work/zip" >&2
	exit 1
}

# Each program says the version of the release.
mkdir "$work/tar" "$work/deb"
tar -xzf "osupgrade-agent_${version}_${os}_$arch.tar.gz" -C "$work/tar"
dpkg-deb -x "osupgrade-agent_${version}_${os}_$arch.deb" "$work/deb"
for program in "$work"/tar/osupgrade-{agent,worker} "$work"/deb/usr/bin/osupgrade-{agent,worker}; do
	[[ $("$program" --version) == *"$version"* ]] || {
		echo "${program#"$work/"} says $("$program" --version), not $version" >&2
		exit 1
	}
done
# For a package, ~ is what comes before the version itself.
ordered=$(sed 's/-/~/' <<<"$version")
[[ $(dpkg-deb -f ./*.deb Version) == "$ordered" && $(rpm -qp --qf '%{VERSION}' ./*.rpm) == "${ordered//-/_}" ]] || {
	echo "the packages are of version $(dpkg-deb -f ./*.deb Version) and $(rpm -qp --qf '%{VERSION}' ./*.rpm), not of $version" >&2
	exit 1
}

# A CLI installs the zip as a registry serves it, and starts what is in it. It reads the names
# in a mirror in small letters.
mirror=$work/mirror/osupgrade.test/osupgrade/osupgrade
mkdir -p "$mirror" "$work/root"
cp "terraform-provider-osupgrade_${version}_${os}_$arch.zip" "$mirror"
printf 'provider_installation {\n  filesystem_mirror {\n    path = "%s"\n  }\n}\n' "$work/mirror" >"$work/cli.rc"
printf 'terraform {\n  required_providers {\n    osupgrade = {\n      source  = "osupgrade.test/osupgrade/osupgrade"\n      version = "%s"\n    }\n  }\n}\n' "${version,,}" >"$work/root/main.tf"
export TF_CLI_CONFIG_FILE=$work/cli.rc CHECKPOINT_DISABLE=1
"$cli" -chdir="$work/root" init -no-color >"$work/init.log" || {
	cat "$work/init.log" >&2
	exit 1
}
schemas=$("$cli" -chdir="$work/root" providers schema -json)
[[ $schemas == *'"osupgrade_config"'* ]] || {
	echo "the provider in the zip has no osupgrade_config" >&2
	exit 1
}
echo "release-check: $version is complete, its checksums are signed, and $(basename "$cli") installs and starts its provider"
