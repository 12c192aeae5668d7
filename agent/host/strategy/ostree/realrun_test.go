package ostree

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// TestRealRun has the site, the worker and OSTree do it: a good release is completed;
// one that does not start is told as rolled back with both versions, and is not deployed
// again. The worker is part of the system that it upgrades.
func TestRealRun(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.Images)
	t.Parallel()
	site := realhost.NewSite(t)
	a := newAppliance(t, func(c *realhost.Container) {
		site.AddHost(c, "h01", map[string]string{"strategy": "ostree"})
	})
	site.Online("h01")
	a.release("2")
	run := site.Upgrade()
	if run.Result != "completed" || a.runs() != "2" {
		t.Fatalf("%s runs, and the run ended as %s: %s: %+v", a.runs(), run.Result, run.Reason, run.Hosts)
	}

	a.release("3")
	a.broken = []string{"3"}
	boots := a.Boots()
	run = site.Upgrade()
	host := run.Hosts[0]
	if run.Result == "completed" || !host.RolledBack || host.Class != "boot" || a.runs() != "2" || a.Boots() != boots+1 {
		t.Errorf("%s runs after %d boots, and the run ended as %s: %+v", a.runs(), a.Boots()-boots, run.Result, host)
	}
	for _, version := range []string{"2 (", "3 ("} {
		if !strings.Contains(host.Error, version) {
			t.Errorf("the operator is told %q, without version %s", host.Error, version)
		}
	}
	t.Logf("the operator is told: %s: %s", host.Class, host.Error)

	a.broken = nil
	boots = a.Boots()
	site.Online("h01")
	if run = site.Upgrade(); a.runs() != "2" || a.Boots() != boots || run.Hosts[0].Status == "failed" {
		t.Errorf("the release that failed was tried again: %s runs after %d boots: %+v", a.runs(), a.Boots()-boots, run.Hosts)
	}
}
