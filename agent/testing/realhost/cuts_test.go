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
	lines := r.lines(func() { r.completed(r.Ended(r.offer("2.0"))) })
	realhost.Strike(t, "power cut", kills, func(n int) bool {
		version := "2." + number(n+1)
		before, at := r.line(), 1+(n%kills)*lines/kills
		run := r.offer(version)
		r.reaches(before + at)
		last := read(t, r.c.Path("/var/log/dpkg.log"))
		struck := r.cut()
		all := strings.Split(strings.TrimSpace(last), "\n")
		t.Logf("cut at line %d of %d: %s", at, lines, all[len(all)-1])
		r.completed(r.Ended(run))
		r.has("appliance "+version, "appliance-lib "+version)
		return struck
	})
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
	realhost.Strike(t, "power cut", realhost.Times(1, 3, 30), func(n int) bool {
		version := "2." + number(n)
		run := r.offer(version)
		realhost.UntilOn(t, r.machine, "the upgrade begins", patience, func() bool { return r.status(run).Status == "upgrading" })
		wait := time.Duration(rand.Int64N(int64(8 * time.Second))) //nolint:gosec // any moment
		time.Sleep(wait)
		struck := r.status(run).Status == "upgrading"
		r.machine.Cut()
		r.machine.Start()
		run = r.Ended(run)
		t.Logf("cut %.1f s after the upgrade was commanded: %s: %s", wait.Seconds(), run.Result, run.Hosts[0].Error)
		if run.Result != "completed" {
			if run.Hosts[0].Status != "failed" || run.Hosts[0].Error == "" {
				t.Errorf("attempt %d: it says not why: %+v", n, run.Hosts[0])
			}
			version += ".1"
			r.repository.Publish(pair(version)...)
			r.upgraded()
		}
		r.has("appliance "+version, "appliance-lib "+version)
		return struck
	})
}

// TestRealCutsInShutdown cuts the power of a virtual machine while it shuts down for the
// reboot of its upgrade.
func TestRealCutsInShutdown(t *testing.T) {
	realhost.Need(t, realhost.Long)
	t.Parallel()
	r := newVM(t, appliance("1.0"), kernel("1.0"))
	realhost.Strike(t, "power cut in the shutdown", realhost.Times(1, 1, 10), func(n int) bool {
		version := "2." + number(n)
		r.repository.Publish(appliance(version), kernel(version))
		before := r.machine.BootID()
		run := r.Begin()
		realhost.UntilOn(t, r.machine, "the reboot begins", patience, func() bool { return r.status(run).Status == "rebooting" })
		wait := time.Duration(rand.Int64N(int64(4 * time.Second))) //nolint:gosec // any moment
		time.Sleep(wait)
		// What answers with another boot id has started already.
		now, err := r.machine.Run(t.Context(), "cat /proc/sys/kernel/random/boot_id")
		struck := err != nil || strings.TrimSpace(now) == before
		r.machine.Cut()
		t.Logf("cut %.1f s after the reboot was commanded", wait.Seconds())
		r.machine.Start()
		r.completed(r.Ended(run))
		r.has("appliance "+version, "appliance-kernel "+version)
		if r.machine.BootID() == before {
			t.Errorf("attempt %d: it did not boot", n)
		}
		return struck
	})
}
