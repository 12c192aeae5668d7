#!/bin/sh
# Fails if a file system has less free space than it should.
# Usage: disk-space.sh MEGABYTES PATH...
set -eu

least=${1:?"give the megabytes that must be free, and the paths"}
shift
[ $# -gt 0 ] || { echo "give at least one path"; exit 1; }
status=0
for path in "$@"; do
    free=$(df -Pk -- "$path" | awk 'NR == 2 { print int($4 / 1024) }') || free=
    if [ -z "$free" ]; then
        echo "cannot tell how much of $path is free"
        status=1
    elif [ "$free" -lt "$least" ]; then
        echo "$path has $free MB free, and needs $least"
        status=1
    fi
done
exit $status
