package realhost_test

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// agent is a package of the agent itself that restarts the worker of the host, in the
// middle of what the worker has begun.
func agent(t *testing.T, version string) realhost.Deb {
	t.Helper()
	return realhost.Deb{
		Name: "osupgrade-agent", Version: version, Files: map[string]string{"usr/local/bin/osupgrade-worker": read(t, realhost.Worker(t, version))},
		Scripts: map[string]string{"postinst": "[ \"$1\" = configure ] && [ -n \"$2\" ] || exit 0\nsystemctl restart osupgrade-worker\n"},
	}
}

// TestRealAgentUpgraded upgrades the agent of a host as one package of a run: the worker
// that began the action is restarted by the package, the action goes on, and the new worker
// answers for it.
func TestRealAgentUpgraded(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	r := newRig(t, realhost.ContainerOptions{}, agent(t, "0.0.1"), appliance("1.0"))
	worker := r.c.Must("systemctl show -P MainPID osupgrade-worker")
	// It is configured last.
	last := appliance("2.0")
	last.Fields = []string{"Depends: osupgrade-agent (>= 0.0.2)"}
	r.repository.Add(agent(t, "0.0.2"), last)
	r.upgraded()
	r.has("osupgrade-agent 0.0.2", "appliance 2.0")
	if now := r.c.Must("systemctl show -P MainPID osupgrade-worker"); now == worker {
		t.Error("the worker was not restarted")
	}
	if version := r.c.Must("/proc/$(systemctl show -P MainPID osupgrade-worker)/exe --version"); !strings.Contains(version, "0.0.2") {
		t.Errorf("the worker is of version %s", version)
	}
	// Once, and by the action that the old worker began.
	if log := read(t, r.c.Path("/var/log/dpkg.log")); strings.Count(log, " upgrade osupgrade-agent:all 0.0.1 0.0.2") != 1 || strings.Count(log, " status installed appliance:all 2.0") != 1 {
		t.Errorf("dpkg did\n%s", log)
	}
}

// TestRealStopperIsNamed has a needrestart restart the worker, as a timer starts it: the log of the
// worker names the command, that program and its unit.
func TestRealStopperIsNamed(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	r := newRig(t, realhost.ContainerOptions{}, appliance("1.0"))
	r.c.WriteFile("/usr/local/sbin/needrestart", "#!/bin/sh\nsystemctl restart osupgrade-worker.service\ntrue\n")
	r.c.Must("systemd-run -q --wait --unit nightly /usr/local/sbin/needrestart")
	log := r.c.Must("journalctl -q -u osupgrade-worker --no-pager -o cat")
	for _, want := range []string{"stop requested", `by="systemctl restart osupgrade-worker.service (process `, " of needrestart (process ", "), started by nightly.service"} {
		if !strings.Contains(log, want) {
			t.Errorf("it does not say %q:\n%s", want, log)
		}
	}
}
