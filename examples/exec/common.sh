# What the scripts share. Each of them has changed to this folder.
#
# The appliance in $root:
#   images/RELEASE.image, .manifest, .sums   what was fetched and checked
#   current -> images/RELEASE.image          what runs
#   runs/RUN/target, from, boot-id, finished what a run is about, and how far it is
set -eu
. ./settings
run=$root/runs/${OSUPGRADE_RUN:-none}

die() {
	echo "$*" >&2
	exit 1
}

progress() {
	printf '{"progress": %d, "message": "%s"}\n' "$1" "$2"
}

# save FILE TEXT: a crash leaves the old file or the new one.
save() {
	printf '%s\n' "$2" >"$1.new"
	mv -f "$1.new" "$1"
}

# current: the release that the link names; nothing where there is no link.
current() {
	link=$(readlink "$root/current") || return 0
	basename "$link" .image
}

# switch_to RELEASE: the link names the old release or the new one, at any moment.
switch_to() {
	rm -f "$root/.current.new"
	ln -s "images/$1.image" "$root/.current.new"
	mv -f "$root/.current.new" "$root/current"
	sync
}

sha256() {
	if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# matches FILE NAME SUMS: FILE has the sum that SUMS has for NAME.
matches() {
	[ -f "$1" ] && [ -f "$3" ] && grep -qxF "$(sha256 "$1")  $2" "$3"
}

# whole RELEASE: its files are all there and are what they were fetched as.
whole() {
	for part in image manifest; do
		matches "$root/images/$1.$part" "$part" "$root/images/$1.sums" || return 1
	done
}

# needs_reboot: the kernel of the run's target is not the one it came from.
needs_reboot() {
	[ "$(kernel "$(cat "$run/from")")" != "$(kernel "$(cat "$run/target")")" ]
}

kernel() {
	sed -n 's/^kernel //p' "$root/images/$1.manifest"
}

# boot_id: the boot id in the request on standard input.
boot_id() {
	sed -n 's/.*"boot-id":"\([^"]*\)".*/\1/p'
}

# begin and finish: what is to be done around the switch. A command's own exit
# status is not passed on, for 10 and 11 have a meaning. What after_switch starts
# does not inherit the lock, which it would hold for as long as it runs.
begin() {
	[ -z "$before_switch" ] || sh -c "$before_switch" || die "before_switch failed with status $?"
}

finish() {
	[ -z "$after_switch" ] || sh -c "$after_switch" 8>&- || die "after_switch failed with status $?"
	save "$run/finished" yes
}
