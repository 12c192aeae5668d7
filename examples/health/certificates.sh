#!/bin/sh
# Fails if a certificate expires soon, cannot be read, or is missing.
# Usage: certificates.sh DAYS PATH...
# A path is a certificate in PEM, or a folder with files *.pem and *.crt.
set -eu

days=${1:?"give the days for which certificates must be valid, and their paths"}
shift
[ $# -gt 0 ] || { echo "give at least one path"; exit 1; }
seconds=$((days * 86400))
status=0

check() {
    if ! end=$(openssl x509 -noout -enddate -in "$1" 2>/dev/null); then
        echo "$1 is not a certificate in PEM"
        status=1
    elif ! openssl x509 -noout -checkend "$seconds" -in "$1" >/dev/null; then
        echo "$1 is valid until ${end#notAfter=}, which is less than $days days"
        status=1
    fi
}

for path in "$@"; do
    if [ ! -d "$path" ]; then
        check "$path"
        continue
    fi
    found=
    for file in "$path"/*.pem "$path"/*.crt; do
        [ -f "$file" ] || continue
        found=yes
        check "$file"
    done
    [ -n "$found" ] || { echo "$path has no file *.pem or *.crt"; status=1; }
done
exit $status
