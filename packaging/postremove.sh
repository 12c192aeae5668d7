#!/bin/sh
# A purge forgets the host: its key, its configuration and its journal. The log and the
# history of a site are kept: nobody else has them.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/osupgrade-worker
	rm -f /etc/osupgrade/worker.yaml /etc/osupgrade/host.key /etc/osupgrade/host.key.next /etc/osupgrade/site-ca.pem
	rmdir --ignore-fail-on-non-empty /etc/osupgrade/checks /etc/osupgrade 2>/dev/null || true
	if [ -d /var/lib/osupgrade/store ]; then
		echo "The site in /var/lib/osupgrade is kept; remove the folder if nobody needs it any more."
	else
		rmdir --ignore-fail-on-non-empty /var/lib/osupgrade 2>/dev/null || true
	fi
fi
