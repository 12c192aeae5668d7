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

// attack interrupts an upgrade that is at work. It returns false if it came too late.
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
		{"power cut", realhost.Times(1, 2, 40), func(r *rig) bool {
			r.c.Cut()
			r.c.Start()
			return true
		}},
		{"power cut twice in a row", realhost.Times(1, 2, 20), func(r *rig) bool {
			for range 2 {
				r.c.Cut()
				r.c.Start()
				time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond) //nolint:gosec // any moment of the repair
			}
			r.c.Cut()
			r.c.Start()
			return true
		}},
		{"reboot by a person", realhost.Times(1, 3, 30), func(r *rig) bool {
			boots := r.c.Boots()
			_, _ = r.c.Run(r.t.Context(), "systemctl reboot")
			realhost.Until(r.t, "it reboots", patience, func() bool { return r.c.Boots() > boots })
			r.c.BootID()
			return true
		}},
	}
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
			lines, has := 0, "1.0"
			for round := range a.times + 1 {
				version := "2." + number(round)
				r.repository.Publish(pair(version)...)
				before := strings.Count(read(t, r.c.Path("/var/log/dpkg.log")), "\n")
				run := r.Begin()
				if round > 0 {
					at := before + 1 + rand.IntN(lines) //nolint:gosec // any moment
					realhost.Until(t, "dpkg is at work", patience, func() bool { return strings.Count(read(t, r.c.Path("/var/log/dpkg.log")), "\n") >= at })
					if a.strike(r) {
						c.struck++
					}
				}
				has = r.judge(r.Ended(run), has, version, &c)
				t.Logf("round %d of %d: %d struck, %d completed, %d rolled back, %d left to a person", round, a.times, c.struck, c.completed, c.back, c.left)
				if round == 0 {
					lines = strings.Count(read(t, r.c.Path("/var/log/dpkg.log")), "\n") - before
				}
			}
			t.Logf("%s: %d of %d struck in time; with the first, undisturbed run %d completed, %d rolled back, %d left to a person", a.name, c.struck, a.times, c.completed, c.back, c.left)
		})
	}
}

// counts are how the runs of an attack ended.
type counts struct{ struck, completed, back, left int }

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
