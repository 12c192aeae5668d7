package rauc

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// site adds a site for the appliance, whose worker goes to whatever bundle the server has.
func (a *appliance) site() *realhost.Site {
	a.t.Helper()
	site := realhost.NewSite(a.t)
	a.Cut()
	site.AddHost(a.Container, "h01", map[string]string{"strategy": "rauc", "rauc-bundle": a.server.URL + "/offered.raucb"})
	a.Start()
	site.Online("h01")
	return site
}

// offer makes a bundle the one that the server has.
func (a *appliance) offer(version, text string, imageMiB int) {
	a.t.Helper()
	a.bundle(version, text, "cert", "appliance", imageMiB)
	a.Must(fmt.Sprintf("mv %s/%s.raucb %s/offered.raucb", a.dir, version, a.dir))
}

// TestRealRun has the site, the worker and RAUC do it: a good release is completed and
// its slot confirmed; one that does not start is told as rolled back with both versions,
// and is not installed again.
func TestRealRun(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.Images)
	t.Parallel()
	const size = 2
	a := newAppliance(t, realhost.Images, size)
	a.offer("2", "version 2", size)
	site := a.site()
	run := site.Upgrade()
	if run.Result != "completed" || a.runs() != "version 2" {
		t.Fatalf("%s runs, and the run ended as %s: %s: %+v", a.runs(), run.Result, run.Reason, run.Hosts)
	}
	if env := a.readEnv(); env["B_OK"] != "1" || env["B_TRY"] != "0" {
		t.Errorf("the slot that runs is not marked as good: %v", env)
	}

	a.offer("3", "version 3 panics", size)
	boots := a.Boots()
	run = site.Upgrade()
	host := run.Hosts[0]
	if run.Result == "completed" || !host.RolledBack || host.Class != "boot" || a.runs() != "version 2" || a.Boots() != boots+1 {
		t.Errorf("%s runs after %d boots, and the run ended as %s: %+v", a.runs(), a.Boots()-boots, run.Result, host)
	}
	for _, version := range []string{"2", "3"} {
		if !strings.Contains(host.Error, version) {
			t.Errorf("the operator is told %q, without version %s", host.Error, version)
		}
	}
	t.Logf("the operator is told: %s: %s", host.Class, host.Error)

	boots = a.Boots()
	site.Online("h01")
	if run = site.Upgrade(); a.runs() != "version 2" || a.Boots() != boots || failed(run) {
		t.Errorf("the release that failed was tried again: %s runs after %d boots: %+v", a.runs(), a.Boots()-boots, run.Hosts)
	}
}

// TestRealRollbackCuts rolls back an upgrade, then that rollback, and so on, and cuts the power at any
// moment of it, which loses what was not synced. Whatever the run then says is true.
func TestRealRollbackCuts(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.Images)
	t.Parallel()
	const size = 2
	a := newAppliance(t, realhost.Images, size)
	a.offer("2", "version 2", size)
	a.Cut()
	a.LosesUnsynced()
	site := a.site()
	newest := site.Upgrade()
	versions, runs := [2]string{"version 1", "version 2"}, 1
	if newest.Result != "completed" || a.runs() != versions[runs] {
		t.Fatalf("%s runs, and the run ended as %s: %s: %+v", a.runs(), newest.Result, newest.Reason, newest.Hosts)
	}
	realhost.Strike(t, "power cut of a rollback", realhost.Times(2, 10, 40), func(n int) bool {
		site.Online("h01")
		run := site.BeginRollback(newest.ID)
		wait := time.Duration(rand.Int64N(int64(3 * time.Second)))
		time.Sleep(wait)
		now, err := site.Client.Run(t.Context(), realhost.Tenant, run.ID)
		if err != nil {
			t.Fatal(err)
		}
		a.Cut()
		a.Start()
		run = site.Ended(run)
		t.Logf("attempt %d: cut %.1f s after its begin, when it was %s: %s: %s", n, wait.Seconds(), now.Hosts[0].Status, run.Result, run.Hosts[0].Error)
		if run.Result == "completed" {
			newest, runs = run, 1-runs
		}
		if got := a.runs(); got != versions[runs] {
			t.Fatalf("attempt %d: %s runs, not %s", n, got, versions[runs])
		}
		return now.Phase != "finished"
	})
}

func failed(run v1.Run) bool { return run.Hosts[0].Status == "failed" }
