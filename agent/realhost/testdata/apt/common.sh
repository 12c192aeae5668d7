# The least that upgrades a host with apt by scripts, for the test of the bed itself. What
# a strategy has to do besides is in agent/worker/strategy/apt.
set -u
state=/var/lib/appliance-upgrade/${OSUPGRADE_RUN:-none}
export DEBIAN_FRONTEND=noninteractive
apt_get() { apt-get -q -y -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold -o APT::Update::Error-Mode=any "$@"; }
# due reports whether the upgrade asks for a reboot that has not happened.
due() { [ -e /run/reboot-required ]; }
