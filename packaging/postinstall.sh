#!/bin/sh
# Makes the user and the folders. It starts and restarts nothing: a worker or a site that
# runs notices that its program was replaced, and ends when it has no work in hand; then
# systemd starts the new one. A service is started by who enables it.
set -e
case "$1" in
configure | 1 | 2 | "") ;;
*) exit 0 ;; # An upgrade that dpkg takes back.
esac
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers /usr/lib/sysusers.d/osupgrade.conf
	systemd-tmpfiles --create /usr/lib/tmpfiles.d/osupgrade.conf
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
