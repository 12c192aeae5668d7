package realhost_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// vendor is a package whose files are in /opt, as those of vendors are, and one in each of
// the other folders that may be a file system of its own.
func vendor(version string) realhost.Deb {
	files := map[string]string{
		"boot/vendor": version + "\n", "var/lib/vendor/state": version + "\n", "usr/share/vendor/file": version + "\n",
	}
	for n := range 20 {
		files[fmt.Sprintf("opt/vendor/%d", n)] = fmt.Sprintf("%s %d\n", version, n)
	}
	return realhost.Deb{Name: "vendor", Version: version, Files: files}
}

// apart are file systems that write by themselves as seldom as they can, so that what no
// sync follows is lost.
var apart = []realhost.Mount{
	{Path: "/opt", Kind: "ext4", Options: "commit=300"}, {Path: "/var", Kind: "ext4", Options: "commit=300"}, {Path: "/boot", Kind: "ext4", Options: "commit=300"},
}

// holds fails the test unless each file of vendor is of the version, and none is left of an unpacking.
func (r *rig) holds(version string) {
	r.t.Helper()
	out := r.machine.Must("grep -L " + strings.ReplaceAll(version, ".", `\.`) + " /opt/vendor/* /boot/vendor /var/lib/vendor/state /usr/share/vendor/file; " +
		"find /opt /boot /usr/share/vendor /var/lib/vendor -name '*.dpkg-new' -o -name '*.dpkg-tmp'")
	if out != "" {
		r.t.Errorf("not of version %s, or left: %s", version, strings.ReplaceAll(out, "\n", " "))
	}
}

// TestRealDoneIsOnEachDisk cuts the power when a run has completed, where the files of a
// package are on other file systems than dpkg's database and no disk has what was not
// flushed: done means that each of them has the files.
func TestRealDoneIsOnEachDisk(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	r, _ := newVolatile(t, apart, vendor("1.0"))
	for round := range realhost.Times(1, 1, 10) {
		version := "2." + number(round)
		r.repository.Publish(vendor(version))
		r.upgraded()
		r.machine.Cut()
		r.machine.Start()
		r.has("vendor " + version)
		r.holds(version)
	}
}

// TestRealCutsOfVolatileDisks cuts the power at chosen flushes of the disk of dpkg's database
// after its record of the new version was written, and loses what no flush has followed, or
// a part of it. Each time the run completes after the boot with each file of its plan, or says
// why not.
func TestRealCutsOfVolatileDisks(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	r, power := newVolatile(t, apart, vendor("1.0"))
	r.cutsAtFlushes(power, realhost.Times(1, 1, 20))
}

// TestRealCutsOfOtherFileSystems is the same on btrfs and xfs.
func TestRealCutsOfOtherFileSystems(t *testing.T) {
	realhost.Need(t, realhost.Long)
	t.Parallel()
	r, power := newVolatile(t, []realhost.Mount{
		{Path: "/opt", Kind: "btrfs", Options: "commit=300"}, {Path: "/var", Kind: "ext4", Options: "commit=300"}, {Path: "/boot", Kind: "xfs"},
	}, vendor("1.0"))
	r.cutsAtFlushes(power, realhost.Times(1, 1, 20))
}

func (r *rig) cutsAtFlushes(power *realhost.Power, rounds int) {
	r.t.Helper()
	realhost.Strike(r.t, "power cut at a flush of a volatile disk", rounds, func(n int) bool {
		version := "2." + number(n)
		r.repository.Publish(vendor(version))
		// The record is in the database after some flushes, and the run is done after some more.
		aim := realhost.Aim{Mount: "/var", Text: "Version: " + version + "\n", Flushes: 2 + rand.IntN(24)} //nolint:gosec // any of them
		if n%2 == 1 {
			aim.Keep = func() bool { return rand.IntN(2) == 0 } //nolint:gosec // any part
		}
		hit := power.CutAt(aim)
		run := r.Begin()
		struck := false
		realhost.UntilOn(r.t, r.machine, "the power is cut or the run ends", patience, func() bool {
			select {
			case <-hit:
				struck = true
			default:
			}
			return struck || r.status(run).Status == "upgraded"
		})
		r.machine.Cut()
		r.machine.Start()
		run = r.Ended(run)
		r.t.Logf("cut at flush %d: %v; %s: %s", aim.Flushes, struck, run.Result, run.Hosts[0].Error)
		if run.Result != "completed" {
			version += ".1"
			r.repository.Publish(vendor(version))
			r.upgraded()
		}
		r.has("vendor " + version)
		r.holds(version)
		return struck
	})
}
