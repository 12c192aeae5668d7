#!/bin/sh
# Fails if the host has not started from the device that it is installed on.
# Usage: boot-device.sh PATH DEVICE... [-m MOUNTS]
# PATH is a mount such as / or /boot. A DEVICE may be a link such as /dev/disk/by-path/….
# MOUNTS is the table of mounts, by default that of the kernel.
set -eu

path=${1:?"give the mount, and the devices that it may be of"}
shift
mounts=/proc/self/mounts
allowed=
while [ $# -gt 0 ]; do
    if [ "$1" = -m ]; then
        mounts=${2:?"give the table of mounts after -m"}
        shift
    else
        allowed="$allowed $1"
    fi
    shift
done
[ -n "$allowed" ] || { echo "give at least one device"; exit 1; }

device=$(awk -v path="$path" '$2 == path { last = $1 } END { print last }' "$mounts")
if [ -z "$device" ]; then
    echo "nothing is mounted at $path"
    exit 1
fi
real=$(readlink -f -- "$device" || echo "$device")
for each in $allowed; do
    [ "$(readlink -f -- "$each" || echo "$each")" != "$real" ] || exit 0
done
echo "$path is on $device, and should be on$allowed"
exit 1
