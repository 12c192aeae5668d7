#!/usr/bin/env bash
# Builds the trees of the tests on real hosts (agent/testing/realhost), once each:
#
#   tools/images.sh NAME...
#
#   bookworm, trixie    a small Debian with systemd, dbus, apt and a kernel
#   images              bookworm with what upgrades images and rpms: RAUC, OSTree, dnf
#   trixie-images       trixie with RAUC
#   dnf5                forky, the Debian to come, with dnf5: no other has it
#   sysupdate           forky with systemd-sysupdate: no released Debian has it
#   trixie-archives     the packages by which the tree bookworm becomes a trixie, with their index
#
# It writes, in .cache/images:
#
#   NAME.tar.zst        the tree as mmdebstrap made it, for the caches of a CI
#   NAME.tree/          unpacked and prepared for tests: the lower layer of each container
#
# It needs root and mmdebstrap, and downloads from the mirror that the apt of this
# machine uses. Nothing else of the tests reaches a mirror. A tree is built again
# when what is below has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=.cache/images
[ "$(id -u)" = 0 ] || { echo "make images: needs root, for mmdebstrap and the owners of files" >&2; exit 1; }
missing=$(for tool in mmdebstrap zstd tar; do command -v "$tool" >/dev/null || echo "$tool"; done)
[ -z "$missing" ] || { echo "make images: missing:" $missing "; install: mmdebstrap zstd" >&2; exit 1; }
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | grep '/debian/\?$' | head -n 1)}
[ -n "$mirror" ] || { echo "make images: apt of this machine names no Debian mirror; set MIRROR to the address of one" >&2; exit 1; }
mkdir -p "$out"
work=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap 'rm -rf "$work"' EXIT

base=systemd,systemd-sysv,dbus,udev,kmod,iproute2,procps,gpgv,e2fsprogs,apt-utils,ca-certificates,linux-image-cloud-amd64,initramfs-tools
packages() {
	case $1 in
	bookworm | trixie) echo "$base" ;;
	images) echo "$base,rauc,rauc-service,ostree,dnf,rpm,createrepo-c,grub-common,curl,squashfs-tools,openssl,needrestart" ;;
	dnf5) echo "systemd,systemd-sysv,dbus,kmod,iproute2,procps,e2fsprogs,ca-certificates,dnf5,rpm,createrepo-c" ;;
	sysupdate) echo "systemd,systemd-sysv,systemd-container,dbus,kmod,iproute2,procps,e2fsprogs,ca-certificates" ;;
	trixie-images) echo "$base,rauc,rauc-service,grub-common,squashfs-tools,openssl" ;;
	*) echo "make images: there is no tree $1; use bookworm, trixie, images, trixie-images, dnf5, sysupdate or trixie-archives" >&2; exit 1 ;;
	esac
}

# prepare TREE: what each test wants alike.
prepare() {
	echo h01 >"$1/etc/hostname"
	printf '127.0.0.1 localhost h01\n' >"$1/etc/hosts"
	rm -f "$1/etc/resolv.conf" && : >"$1/etc/resolv.conf"
	chroot "$1" passwd -q -d root
	echo uninitialized >"$1/etc/machine-id"
	# Nothing of the distribution upgrades by itself beside the test, or asks for a
	# console that is not there.
	for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
		systemd-timesyncd.service systemd-networkd-wait-online.service man-db.timer rauc-mark-good.service dnf-makecache.timer \
		getty@tty1.service serial-getty@ttyS0.service console-getty.service; do
		ln -sfn /dev/null "$1/etc/systemd/system/$unit"
	done
	# The only repositories of a test are its own.
	rm -rf "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/* "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*
	mkdir -p "$1/var/lib/apt/lists/partial" "$1/var/cache/apt/archives/partial" "$1/etc/apt/keyrings"
}

# archives FOLDER: what a release upgrade of the tree bookworm downloads.
archives() {
	[ -d "$out/bookworm.tree" ] || { echo "make images: trixie-archives needs the tree bookworm; name it before" >&2; exit 1; }
	cp -a "$out/bookworm.tree" "$work/old"
	unshare --mount --propagation private bash -euo pipefail -c '
		mount --bind /dev "$1/dev"
		mount -t proc proc "$1/proc"
		cp /etc/resolv.conf "$1/etc/resolv.conf"
		echo "deb $2 trixie main" >"$1/etc/apt/sources.list"
		chroot "$1" apt-get -q -o APT::Sandbox::User=root update >/dev/null
		chroot "$1" apt-get -q -y -o APT::Sandbox::User=root --download-only dist-upgrade >/dev/null
		chroot "$1" sh -c "cd /var/cache/apt/archives && apt-ftparchive packages . >Packages"
	' bash "$work/old" "$mirror"
	mkdir "$1"
	mv "$work"/old/var/cache/apt/archives/{*.deb,Packages} "$1"
	rm -rf "$work/old"
}

for name in "${@:-bookworm}"; do
	stamp=$(cat "${BASH_SOURCE[0]}" | sha256sum | cut -c 1-16)
	if [ "$(cat "$out/$name.tree/.built" 2>/dev/null)" = "$stamp" ]; then
		echo "$name: is there"
		continue
	fi
	if [ "$name" = trixie-archives ]; then
		echo "$name: download"
		rm -rf "$out/$name.new" "$out/$name.tree"
		archives "$out/$name.new"
		echo "$stamp" >"$out/$name.new/.built"
		mv "$out/$name.new" "$out/$name.tree"
		continue
	fi
	list=$(packages "$name")
	apt=()
	case $name in
	images) suite=bookworm ;;
	# A mirror may have a suite that is not released beyond its Valid-Until. Its signature is checked all the same.
	dnf5 | sysupdate) suite=forky apt=(--aptopt='Acquire::Check-Valid-Until "false"') ;;
	*) suite=${name%-images} ;;
	esac
	made=$(printf '%s %s' "$suite" "$list" | sha256sum | cut -c 1-16)
	if [ "$(cat "$out/$name.made" 2>/dev/null)" != "$made" ] || [ ! -f "$out/$name.tar.zst" ]; then
		echo "$name: mmdebstrap (about a minute)"
		mmdebstrap --quiet --mode=root --variant=minbase --include="$list" \
			--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
			--dpkgopt='path-exclude=/usr/share/locale/*' --aptopt='Acquire::Languages "none"' "${apt[@]}" \
			"$suite" "$work/$name.tar" "$mirror" || {
			# A mirror need not have a suite that is not released: the others are built all the same.
			[ "$suite" = forky ] && [ $# -gt 1 ] || exit 1
			echo "$name: NOT BUILT, since mmdebstrap failed with $suite; make test-hosts skips its tests, and names them" >&2
			continue
		}
		zstd -q -T0 -3 --rm "$work/$name.tar" -o "$out/$name.tar.zst.new"
		mv "$out/$name.tar.zst.new" "$out/$name.tar.zst"
		echo "$made" >"$out/$name.made"
	fi
	rm -rf "$out/$name.new" "$out/$name.tree"
	mkdir "$out/$name.new"
	tar -C "$out/$name.new" --zstd -xf "$out/$name.tar.zst"
	prepare "$out/$name.new"
	echo "$stamp" >"$out/$name.new/.built"
	mv "$out/$name.new" "$out/$name.tree"
	echo "$name: $(du -sh "$out/$name.tar.zst" | cut -f 1) packed"
done
