package realhost_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// attack interrupts an upgrade that is at work. It reports whether it came in time.
type attack struct {
	name   string
	times  int
	strike func(r *rig) bool
}

// attacks are those on a container, where nothing that was written is lost.
func attacks() []attack {
	return []attack{
		{"dpkg killed", realhost.Times(1, 3, 50), func(r *rig) bool { return r.kill("dpkg") }},
		{"apt-get killed", realhost.Times(1, 3, 50), func(r *rig) bool { return r.kill("apt-get") }},
		{"apt-get killed and the power cut", realhost.Times(1, 2, 30), func(r *rig) bool {
			defer r.c.Start()
			defer r.c.Cut()
			return r.kill("apt-get", "dpkg")
		}},
		{"power cut", realhost.Times(1, 2, 40), (*rig).cut},
		{"power cut twice in a row", realhost.Times(1, 2, 20), func(r *rig) bool {
			struck := r.cut()
			for range 2 {
				time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond) //nolint:gosec // any moment of the repair
				r.c.Cut()
				r.c.Start()
			}
			return struck
		}},
		{"reboot by a person", realhost.Times(1, 3, 30), func(r *rig) bool {
			boots, struck := r.c.Boots(), r.atWork()
			_, _ = r.c.Run(r.t.Context(), "systemctl reboot")
			realhost.Until(r.t, "it reboots", patience, func() bool { return r.c.Boots() > boots })
			r.c.BootID()
			return struck
		}},
	}
}

// atWork reports whether apt is at work on the host.
func (r *rig) atWork() bool {
	r.t.Helper()
	_, err := r.c.Run(r.t.Context(), "pgrep -x apt-get")
	return err == nil
}

// cut cuts the power of a container and turns it on again.
func (r *rig) cut() (struck bool) {
	r.t.Helper()
	struck = r.atWork()
	r.c.Cut()
	r.c.Start()
	return struck
}

// kill kills programs of the host as the kernel does when memory is short.
func (r *rig) kill(programs ...string) (struck bool) {
	r.t.Helper()
	for _, program := range programs {
		if _, err := r.c.Run(r.t.Context(), "pkill -9 -x "+program); err == nil {
			struck = true
		}
	}
	return struck
}

// TestRealAttacks interrupts upgrades at random lines of dpkg's log. Whatever a run then says
// is true: "completed" means each version and file of its plan, "rolled back" those of before,
// and the commands that a failure prints make the host healthy.
func TestRealAttacks(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, realhost.ContainerOptions{}, pair("1.0")...)
			var c counts
			has := "1.0"
			lines := r.lines(func() { has = r.judge(r.Ended(r.offer("2.0")), has, "2.0", &c) })
			realhost.Strike(t, a.name, a.times, func(n int) bool {
				version := "2." + number(n+1)
				before := r.line()
				run := r.offer(version)
				r.reaches(before + 1 + rand.IntN(lines)) //nolint:gosec // any moment
				struck := a.strike(r)
				has = r.judge(r.Ended(run), has, version, &c)
				t.Logf("attempt %d: %d completed, %d rolled back, %d left to a person", n, c.completed, c.back, c.left)
				return struck
			})
		})
	}
}

// offer publishes the pair in a version and begins a run.
func (r *rig) offer(version string) v1.Run {
	r.t.Helper()
	r.repository.Publish(pair(version)...)
	return r.Begin()
}

// line is how many lines dpkg has written into its log.
func (r *rig) line() int {
	r.t.Helper()
	return strings.Count(read(r.t, r.c.Path("/var/log/dpkg.log")), "\n")
}

// lines returns how many lines dpkg writes in an upgrade.
func (r *rig) lines(upgrade func()) int {
	r.t.Helper()
	before := r.line()
	upgrade()
	return r.line() - before
}

// reaches waits until dpkg has written so many lines.
func (r *rig) reaches(line int) {
	r.t.Helper()
	realhost.Until(r.t, "dpkg is at work", patience, func() bool { return r.line() >= line })
}

// counts are how the runs of an attack ended.
type counts struct{ completed, back, left int }

// remedy is the commands in what a failure says.
var remedy = regexp.MustCompile(`run: (.*?)(; the last repair said|$)`)

// judge fails the test unless the host is as the run says. It returns the version that the
// host has then, after the printed commands if there are any.
func (r *rig) judge(run v1.Run, before, planned string, c *counts) string {
	r.t.Helper()
	version, host := planned, run.Hosts[0]
	switch {
	case run.Result == "completed":
		c.completed++
	case host.RolledBack:
		c.back++
		version = before
		r.t.Logf("run %d was rolled back: %s: %s", run.ID, host.Class, host.Error)
	default:
		c.left++
		r.t.Logf("run %d leaves the host to a person: %s: %s", run.ID, host.Class, host.Error)
		if host.Class == "" {
			r.t.Errorf("run %d failed without a class: %s", run.ID, host.Error)
		}
		if said := remedy.FindStringSubmatch(host.Error); said != nil {
			r.c.Must(said[1])
		}
		version = planned + ".1"
		r.repository.Publish(pair(version)...)
		r.upgraded()
	}
	if wrong := r.c.Must("dpkg --verify appliance appliance-lib | grep -v ' c /' || true"); wrong != "" {
		r.t.Errorf("run %d: dpkg --verify: %s", run.ID, wrong)
	}
	r.has("appliance "+version, "appliance-lib "+version)
	return version
}
