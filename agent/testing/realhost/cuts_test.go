package realhost_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
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
	r := &rig{Site: realhost.NewSite(t), t: t, repository: realhost.NewRepository(t), past: realhost.NewPast(t), c: realhost.NewContainer(t, realhost.ContainerOptions{})}
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
	r.addHost(v)
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
	realhost.Strike(t, "power cut", realhost.Times(1, 3, 20), func(n int) bool {
		version := "2." + number(n)
		struck, run := r.cutsIn("upgrading", 8*time.Second, r.offer(version))
		if run.Result != "completed" {
			version += ".1"
			r.repository.Publish(pair(version)...)
			r.upgraded()
		}
		r.has("appliance "+version, "appliance-lib "+version)
		return struck
	})
}

// cutsIn cuts the power of a machine at a moment after its run has come to a status, and returns
// the run when it has ended, and whether the cut came before that status was over.
func (r *rig) cutsIn(status string, within time.Duration, run v1.Run) (struck bool, ended v1.Run) {
	r.t.Helper()
	r.comes(run, status)
	wait := time.Duration(rand.Int64N(int64(within))) //nolint:gosec // any moment
	time.Sleep(wait)
	struck = r.status(run).Status == status
	r.machine.Cut()
	r.machine.Start()
	ended = r.Ended(run)
	host := ended.Hosts[0]
	r.t.Logf("cut %.1f s after it was %s: %s: %s", wait.Seconds(), status, ended.Result, host.Error)
	if ended.Result != "completed" && (host.Status != "failed" || host.Error == "") {
		r.t.Errorf("run %d: it says not why: %+v", ended.ID, host)
	}
	return struck, ended
}

// comes waits until the host of a run has a status, or the run is over for it.
func (r *rig) comes(run v1.Run, status string) {
	r.t.Helper()
	realhost.UntilOn(r.t, r.machine, "the host is "+status, patience, func() bool {
		now := r.status(run).Status
		return now == status || now == "upgraded" || now == "failed"
	})
}

// newLosing returns a rig whose host is a container that loses in a power cut what was not synced.
func newLosing(t *testing.T, debs ...realhost.Deb) *rig {
	t.Helper()
	r := newRig(t, realhost.ContainerOptions{}, debs...)
	r.c.Cut()
	r.c.LosesUnsynced()
	r.c.Start()
	r.Online("h01")
	return r
}

// phases are the statuses of a host in which its power is cut.
var phases = []string{"preparing", "upgrading"}

// lasts returns how long a host has each of the phases in a run that completes undisturbed, and
// the run when it has ended.
func (r *rig) lasts(run v1.Run) (map[string]time.Duration, v1.Run) {
	r.t.Helper()
	all := map[string]time.Duration{}
	for i, status := range phases {
		r.comes(run, status)
		began := time.Now()
		r.comes(run, append(phases, "upgraded")[i+1])
		all[status] = time.Since(began)
	}
	r.t.Logf("the phases of a run last %v", all)
	return all, r.completed(r.Ended(run))
}

// cutsPhase is cutsIn with a mirror that does not answer while the host upgrades: what is prepared
// needs no mirror, so such a run completes whatever the cut has taken. A cut that has taken nothing
// does not count: it came after the last sync of the phase, or of another program of this machine.
func (r *rig) cutsPhase(phase string, within time.Duration, run v1.Run) (struck bool, ended v1.Run) {
	r.t.Helper()
	r.comes(run, phase)
	prepared := phase != "preparing"
	if prepared {
		r.past.Break(realhost.Down)
		defer r.past.Break(realhost.None)
	}
	file, content := r.c.Path("/srv/not-synced"), phase+" "+number(run.ID)
	_ = os.Remove(file) // Of a file that is replaced ext4 syncs the content.
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
	struck, ended = r.cutsIn(phase, within, run)
	if prepared && ended.Result != "completed" {
		r.t.Errorf("run %d was prepared when the power was cut and the mirror went down, and ended as %s: %+v", run.ID, ended.Result, ended.Hosts)
	}
	left, _ := os.ReadFile(file)
	if string(left) == content {
		r.t.Log("the cut has taken nothing")
		struck = false
	}
	return struck, ended
}

// TestRealPinnedPowerCuts cuts the power of a host while it prepares and while it upgrades, each
// time for a run with a release: what the repository had on a day, while it has gone on since. A
// run that completes has installed what its release has. One that fails has installed nothing else,
// and the next one to the same release completes. Of what the repository has now the host never
// fetches a package.
func TestRealPinnedPowerCuts(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	r := newLosing(t, pair("1.0")...)
	never := r.goesOn()
	lasts, _ := r.lasts(r.BeginRelease(r.pins(0, "2.0")))
	has := "2.0"
	realhost.Strike(t, "power cut of a pinned run", realhost.Times(0, 10, 40), func(n int) bool {
		version := "2." + number(n+1)
		name, phase := r.pins(n+1, version), phases[n%2]
		struck, run := r.cutsPhase(phase, lasts[phase], r.BeginRelease(name))
		if run.Result != "completed" {
			r.hasOneOf(has, version)
			r.completed(r.Ended(r.BeginRelease(name)))
		}
		r.has("appliance "+version, "appliance-lib "+version)
		has = version
		never()
		return struck
	})
}

// TestRealRollbackPowerCuts cuts the power of a host while a run that took it from one release to
// the next is rolled back, and then while that rollback is rolled back, and so on. A rollback that
// completes has brought the host to what it had before, from the mirror with dates; one that fails
// has installed nothing else, and the next one completes.
func TestRealRollbackPowerCuts(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	r := newLosing(t, pair("1.0")...)
	there := r.between("2.0", "2.1")
	lasts, run := r.lasts(r.BeginRollback(there.newest.ID))
	there.back(run)
	realhost.Strike(t, "power cut of a rollback", realhost.Times(0, 5, 20), func(n int) bool {
		phase := phases[n%2]
		struck, run := r.cutsPhase(phase, lasts[phase], r.BeginRollback(there.newest.ID))
		there.back(run)
		return struck
	})
}

// TestRealRollbackKills is [TestRealRollbackPowerCuts] with cuts at lines that dpkg writes into its
// log, spread over a rollback, on a disk that loses nothing.
func TestRealRollbackKills(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	r := newRig(t, realhost.ContainerOptions{}, pair("1.0")...)
	there := r.between("2.0", "2.1")
	lines := r.lines(func() { there.back(r.Ended(r.BeginRollback(there.newest.ID))) })
	kills := realhost.Times(2, 10, 40)
	realhost.Strike(t, "power cut of a rollback", kills, func(n int) bool {
		before, at := r.line(), 1+(n%kills)*lines/kills
		run := r.BeginRollback(there.newest.ID)
		r.reaches(before + at)
		struck := r.cut()
		there.back(r.Ended(run))
		return struck
	})
}

// between is a host that goes from one of two releases to the other and back.
type between struct {
	r        *rig
	versions [2]string
	// has is the version that the host has, and newest the run that brought it.
	has    int
	newest v1.Run
	never  func()
}

// between takes the host to one release and then to the other, while the repository goes on.
func (r *rig) between(versions ...string) *between {
	r.t.Helper()
	b := &between{r: r, versions: [2]string(versions), has: 1, never: r.goesOn()}
	for n, version := range versions {
		b.newest = r.completed(r.Ended(r.BeginRelease(r.pins(n, version))))
	}
	return b
}

// back judges a rollback of the newest run that has ended. One that failed has left the host with
// packages of both releases at most, and is begun again.
func (b *between) back(run v1.Run) {
	b.r.t.Helper()
	if run.Result != "completed" {
		b.r.t.Logf("it fails: %s", run.Hosts[0].Error)
		b.r.hasOneOf(b.versions[:]...)
		run = b.r.completed(b.r.Ended(b.r.BeginRollback(b.newest.ID)))
	}
	b.newest, b.has = run, 1-b.has
	b.r.has("appliance "+b.versions[b.has], "appliance-lib "+b.versions[b.has])
	b.never()
}

// pins declares a release of the pair in a version, which the mirror with dates has as of a day of its own.
func (r *rig) pins(n int, version string) (name string) {
	r.t.Helper()
	name = "day-" + number(n)
	day := time.Date(2026, 1, 1+n, 6, 0, 0, 0, time.UTC)
	r.past.Keep(day.Format(time.DateOnly), "appliance", plain, pair(version)...)
	r.Declare(name, release.Release{Packages: &release.Packages{AsOf: day}})
	return name
}

// goesOn publishes versions that no release has. never fails the test if a host has fetched a package
// from the repository since.
func (r *rig) goesOn() (never func()) {
	r.repository.Publish(pair("9.0")...)
	begun := len(r.repository.Asked())
	return func() {
		r.t.Helper()
		if fetched := slices.DeleteFunc(r.repository.Asked()[begun:], func(path string) bool { return !strings.HasPrefix(path, "pool/") }); len(fetched) > 0 {
			r.t.Fatalf("it fetches what the repository has now: %v", fetched)
		}
	}
}

// plain is what the repository of a rig says of itself.
var plain = realhost.Release{Origin: "Appliance", Label: "Appliance", Suite: "stable", Codename: "stable"}

// hasOneOf fails the test unless each package of the pair is of one of the versions.
func (r *rig) hasOneOf(versions ...string) {
	r.t.Helper()
	for _, got := range strings.Fields(r.machine.Must("dpkg-query -W -f '${Version} ' appliance appliance-lib")) {
		if !slices.Contains(versions, got) {
			r.t.Errorf("the host has version %s of a package, and not one of %v", got, versions)
		}
	}
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
