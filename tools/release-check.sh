#!/usr/bin/env bash
# Makes the release of .goreleaser.yaml on this machine, for its platform alone and signed
# by a key that is thrown away, and checks what a registry and a user would check:
#
#   tools/release-check.sh
#
# Needs goreleaser and gpg on PATH. Nothing is published.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for program in goreleaser gpg unzip; do
	command -v $program >/dev/null || {
		echo "release-check needs $program on PATH. goreleaser: go install github.com/goreleaser/goreleaser/v2@v2.13.0" >&2
		exit 1
	}
done
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
	"osupgrade-agent_${version}_${os}_$arch.tar.gz"; do
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
echo "release-check: $version is complete, and its checksums are signed"
