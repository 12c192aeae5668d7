#!/bin/sh
# Stops what is about to lose its program, and not what is upgraded. A script or package
# manager that upgrades the host at this moment survives its worker.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl --quiet disable --now osupgrade-worker.service osupgrade-agent.service
	fi
	;;
esac
