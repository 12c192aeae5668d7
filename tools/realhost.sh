#!/usr/bin/env bash
# What make needs around the tests on real hosts (agent/testing/realhost):
#
#   tools/realhost.sh install LEVEL     as root: install what they need with the apt of this machine
#   tools/realhost.sh missing LEVEL     fail and say what is missing, if anything is
#   tools/realhost.sh trees LEVEL       print the trees that they start from, for make images
#   tools/realhost.sh test LEVEL TIME   run them, for TIME at the longest
#   tools/realhost.sh skipped           say which were skipped, and why, if any was
#
# LEVEL is quick, hosts or long, as in agent/testing/realhost: each has the tests of those before.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
skipped=.cache/realhost/skipped

# packages LEVEL prints the Debian packages that are missing.
packages() {
	local all="mmdebstrap=mmdebstrap zstd=zstd systemd-nspawn=systemd-container nsenter=util-linux unshare=util-linux"
	[ "$1" = quick ] || all="$all qemu-system-x86_64=qemu-system-x86 busybox=busybox-static mke2fs=e2fsprogs losetup=mount"
	if [ "$1" = long ]; then
		all="$all grub-mkimage=grub-common rauc=rauc mksquashfs=squashfs-tools openssl=openssl mkfs.xfs=xfsprogs mkfs.btrfs=btrfs-progs"
		[ -e /usr/lib/grub/i386-pc/boot.img ] || echo grub-pc-bin
	fi
	for one in $all; do
		command -v "${one%%=*}" >/dev/null || echo "${one#*=}"
	done | sort -u
}
# trees LEVEL prints the trees that the tests start from.
trees() { case $1 in quick) echo bookworm images ;; hosts) echo bookworm images dnf5 sysupdate ;; *) echo bookworm images trixie-images trixie-archives dnf5 sysupdate ;; esac; }
# spare TREE: whether its tests may be skipped, as in agent/testing/realhost. They are named in the last lines.
spare() { [ "$1" = dnf5 ] || [ "$1" = sysupdate ]; }

case ${1:-} in
install)
	mapfile -t wanted < <(packages "$2")
	[ ${#wanted[@]} != 0 ] || exit 0
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "without root and apt nothing is installed; the tests on real hosts need: ${wanted[*]}" >&2
		exit 1
	fi
	echo "install for the tests on real hosts: ${wanted[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q update >/dev/null
	apt-get -q -y --no-install-recommends install "${wanted[@]}" >/dev/null
	;;
missing)
	mapfile -t wanted < <(packages "$2")
	lacks=()
	[ "$(id -u)" = 0 ] || lacks+=("root")
	[ ${#wanted[@]} = 0 ] || lacks+=("programs; install the Debian packages: ${wanted[*]}")
	for tree in $(trees "$2"); do
		[ -f ".cache/images/$tree.tree/.built" ] || spare "$tree" || lacks+=("the tree $tree; run as root: make images TREES='$(trees "$2")'")
	done
	[ ${#lacks[@]} != 0 ] || exit 0
	printf 'missing: %s\n' "${lacks[@]}" >&2
	exit 1
	;;
trees) trees "$2" ;;
test)
	mkdir -p "$(dirname "$skipped")"
	: >"$skipped"
	mapfile -t packages < <(grep -rl --include='*_test.go' '"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"' . | xargs -n1 dirname | sort -u)
	# One package after the other: each starts several machines at once.
	REALHOST=$2 go test -count=1 -p 1 -parallel 4 -timeout "$3" -run '^TestReal' "${packages[@]}"
	;;
skipped)
	[ -s "$skipped" ] || exit 0
	echo "NOT TESTED: these tests on real hosts were skipped on this machine:"
	sed 's/^/  /' "$skipped"
	;;
*)
	sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | grep '^#' >&2
	exit 2
	;;
esac
