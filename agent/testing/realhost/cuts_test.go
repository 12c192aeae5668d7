package realhost_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// pair is a package and one that needs the same version of it.
func pair(version string) []realhost.Deb {
	a := appliance(version)
	a.Fields = []string{"Depends: appliance-lib (>= " + version + ")"}
	return []realhost.Deb{{Name: "appliance-lib", Version: version, Files: map[string]string{"usr/lib/appliance/lib": version}}, a}
}

// TestRealKills cuts the power of a host at lines that dpkg writes into its log, spread
// over an upgrade. Each time the same run completes after the boot, with each package of
// its plan in its version.
func TestRealKills(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	r := newRig(t, realhost.ContainerOptions{}, pair("1.0")...)
	kills := realhost.Times(5, 20, 60)
	lines := 0
	for round := range kills + 1 {
		version := "2." + number(round)
		r.repository.Publish(pair(version)...)
		before := strings.Count(read(t, r.c.Path("/var/log/dpkg.log")), "\n")
		run := r.Begin()
		if round > 0 {
			// The first round tells how many lines there are.
			at := 1 + (round-1)*lines/kills
			realhost.Until(t, "dpkg is at work", patience, func() bool { return strings.Count(read(t, r.c.Path("/var/log/dpkg.log")), "\n") >= before+at })
			last := read(t, r.c.Path("/var/log/dpkg.log"))
			r.c.Cut()
			all := strings.Split(strings.TrimSpace(last), "\n")
			t.Logf("cut at line %d of %d: %s", at, lines, all[len(all)-1])
			r.c.Start()
		}
		r.completed(r.Ended(run))
		r.has("appliance "+version, "appliance-lib "+version)
		if round == 0 {
			lines = strings.Count(read(t, r.c.Path("/var/log/dpkg.log")), "\n") - before
		}
	}
}

// status is the host's part of a run.
func (r *rig) status(run v1.Run) v1.RunHost {
	r.t.Helper()
	now, err := r.Client.Run(r.t.Context(), realhost.Tenant, run.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	return now.Hosts[0]
}

// newVM returns a rig whose host is a virtual machine.
func newVM(t *testing.T, debs ...realhost.Deb) *rig {
	t.Helper()
	r, _ := newVolatile(t, nil, debs...)
	return r
}

// newVolatile returns a rig whose host is a virtual machine, with disks that have a volatile
// cache if mounts names file systems besides "/".
func newVolatile(t *testing.T, mounts []realhost.Mount, debs ...realhost.Deb) (*rig, *realhost.Power) {
	t.Helper()
	r := &rig{Site: realhost.NewSite(t), t: t, repository: realhost.NewRepository(t), c: realhost.NewContainer(t, realhost.ContainerOptions{})}
	r.repository.Publish(debs...)
	realhost.AddRepository(r.c, "appliance", r.repository)
	r.c.Start()
	r.c.Must("apt-get -q update && apt-get -q -y install " + names(debs))
	r.c.Cut()
	v := realhost.NewVM(t, r.c)
	var power *realhost.Power
	if len(mounts) > 0 {
		power = v.Volatile(mounts...)
	}
	realhost.AddRepository(v, "appliance", r.repository)
	r.AddHost(v, "h01", settings)
	r.machine = v
	v.Start()
	r.Online("h01")
	return r, power
}

// TestRealPowerCuts cuts the power of a virtual machine in the first seconds of its
// upgrade, where what was not synced is lost, and looks at what the site then says. A
// run that completes has carried out its plan; one that fails says why, and the next one
// upgrades the host.
func TestRealPowerCuts(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	r := newVM(t, pair("1.0")...)
	completed, cuts := 0, realhost.Times(1, 3, 30)
	for round := range cuts {
		version := "2." + number(round)
		r.repository.Publish(pair(version)...)
		run := r.Begin()
		realhost.UntilOn(t, r.machine, "the upgrade begins", patience, func() bool { return r.status(run).Status == "upgrading" })
		wait := time.Duration(rand.Int64N(int64(8 * time.Second))) //nolint:gosec // any moment
		time.Sleep(wait)
		r.machine.Cut()
		t.Logf("round %d: cut %.1f s after the upgrade was commanded", round, wait.Seconds())
		r.machine.Start()
		run = r.Ended(run)
		if run.Result == "completed" {
			completed++
		} else {
			t.Logf("round %d: run %d ended as %s: %+v", round, run.ID, run.Result, run.Hosts[0])
			if run.Hosts[0].Status != "failed" || run.Hosts[0].Error == "" {
				t.Errorf("round %d: it says not why", round)
			}
			r.repository.Publish(pair(version + ".1")...)
			version += ".1"
			r.upgraded()
		}
		r.has("appliance "+version, "appliance-lib "+version)
	}
	t.Logf("%d of %d runs completed though their host lost its power", completed, cuts)
}

// TestRealCutsInShutdown cuts the power of a virtual machine while it shuts down for the
// reboot of its upgrade.
func TestRealCutsInShutdown(t *testing.T) {
	realhost.Need(t, realhost.Long)
	t.Parallel()
	r := newVM(t, appliance("1.0"), kernel("1.0"))
	for round := range realhost.Times(1, 1, 10) {
		version := "2." + number(round)
		r.repository.Publish(appliance(version), kernel(version))
		before := r.machine.BootID()
		run := r.Begin()
		realhost.UntilOn(t, r.machine, "the reboot begins", patience, func() bool { return r.status(run).Status == "rebooting" })
		wait := time.Duration(rand.Int64N(int64(4 * time.Second))) //nolint:gosec // any moment
		time.Sleep(wait)
		r.machine.Cut()
		t.Logf("round %d: cut %.1f s after the reboot was commanded", round, wait.Seconds())
		r.machine.Start()
		r.completed(r.Ended(run))
		r.has("appliance "+version, "appliance-kernel "+version)
		if r.machine.BootID() == before {
			t.Errorf("round %d: it did not boot", round)
		}
	}
}
