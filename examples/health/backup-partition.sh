#!/bin/sh
# Fails if a backup partition is not mounted, cannot be written, or is too full.
# Usage: backup-partition.sh PATH MEGABYTES [MOUNTS]
# MOUNTS is the table of mounts, by default that of the kernel.
set -eu

path=${1:?"give the path of the partition, and the megabytes that must be free"}
least=${2:?"give the megabytes that must be free"}
mounts=${3:-/proc/self/mounts}

options=$(awk -v path="$path" '$2 == path { last = $4 } END { print last }' "$mounts")
if [ -z "$options" ]; then
    echo "nothing is mounted at $path"
    exit 1
fi
case ",$options," in
*,ro,*)
    echo "$path is mounted read-only"
    exit 1
    ;;
esac
free=$(df -Pk -- "$path" | awk 'NR == 2 { print int($4 / 1024) }')
if [ "$free" -lt "$least" ]; then
    echo "$path has $free MB free, and needs $least"
    exit 1
fi
