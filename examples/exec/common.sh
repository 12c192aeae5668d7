# Functions of all scripts. The working directory of each script is this folder.
#
# The appliance in $root:
#   images/RELEASE.image, .manifest, .sums   the releases, fetched and verified
#   current -> images/RELEASE.image          the running release
#   runs/RUN/target, from, boot-id, finished the state of a run
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

# current: the release that the link points to; nothing if there is no link.
current() {
	link=$(readlink "$root/current") || return 0
	basename "$link" .image
}

# switch_to RELEASE: replaces the link atomically.
switch_to() {
	rm -f "$root/.current.new"
	ln -s "images/$1.image" "$root/.current.new"
	mv -f "$root/.current.new" "$root/current"
	sync
}

sha256() {
	if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# matches FILE NAME SUMS: FILE has the sum of NAME in SUMS.
matches() {
	[ -f "$1" ] && [ -f "$3" ] && grep -qxF "$(sha256 "$1")  $2" "$3"
}

# complete RELEASE: all files of the release exist and have their sums.
complete() {
	for part in image manifest; do
		matches "$root/images/$1.$part" "$part" "$root/images/$1.sums" || return 1
	done
}

# packages RELEASE MANIFEST: the packages of a release, one per line.
packages() {
	echo "appliance $1"
	cat "$2"
}

# plan RELEASE MANIFEST: what changes from the running release to another one, as JSON.
plan() {
	from=$(current)
	changes=$({
		packages "$from" "$root/images/$from.manifest"
		echo --
		packages "$1" "$2"
	} | awk '
		$1 == "--" { after = 1; next }
		!after { from[$1] = $2; next }
		{ to[$1] = $2 }
		END {
			for (p in from) all[p]; for (p in to) all[p]
			for (p in all) if (from[p] != to[p])
				printf "{\"name\":\"%s\",\"from\":\"%s\",\"to\":\"%s\"}\n", p, from[p], to[p]
		}' | sort | paste -s -d , -)
	reboot=
	[ "$(sed -n 's/^kernel //p' "$2")" = "$(kernel "$from")" ] || reboot=', "reboot": "the kernel changes"'
	printf '{"changes": [%s]%s}\n' "$changes" "$reboot"
}

# needs_reboot: the old and the new release have different kernels.
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

# before: the release from before the run that is rolled back, by its plan in the request on
# standard input.
before() {
	sed -n 's/.*{"name":"appliance","from":"\([^"]*\)".*/\1/p'
}

# begin and finish: the commands before and after the switch. Their exit status is
# not the script's, because 10 and 11 have a meaning. A process that after_switch
# starts does not inherit the lock, which it would hold as long as it runs.
begin() {
	[ -z "$before_switch" ] || sh -c "$before_switch" || die "before_switch failed with status $?"
}

finish() {
	[ -z "$after_switch" ] || sh -c "$after_switch" 8>&- || die "after_switch failed with status $?"
	save "$run/finished" yes
}
