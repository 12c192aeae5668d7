package apt_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// family are packages that depend on each other, with a script that takes a moment.
func family(version string) []realhost.Deb {
	var debs []realhost.Deb
	for i := range 4 {
		d := configured(fmt.Sprintf("appliance-%d", i), version)
		if i > 0 {
			d.Fields = []string{fmt.Sprintf("Depends: appliance-%d (= %s)", i-1, version)}
		}
		d.Scripts = map[string]string{"postinst": "sleep 0.1\n", "preinst": "sleep 0.05\n"}
		for n := range 20 {
			d.Files[fmt.Sprintf("usr/share/appliance-%d/%d", i, n)] = strings.Repeat(version, 2000)
		}
		debs = append(debs, d)
	}
	return debs
}

const upgraded = "ii appliance-0 2.0\nii appliance-1 2.0\nii appliance-2 2.0\nii appliance-3 2.0"

// begin starts the upgrade beside the test. What it prints goes to /var/out.
func (d *debian) begin() { d.t.Helper(); d.start("upgrade") }

// start starts an action beside the test.
func (d *debian) start(action string) {
	d.t.Helper()
	d.Must("rm -f /var/out; (setsid " + d.request(action) + " >/var/out 2>&1; echo ended >>/var/out) >/dev/null 2>&1 </dev/null &")
}

// says waits until that has printed something, and returns all that it has printed.
func (d *debian) says(what string) (out string) {
	d.t.Helper()
	realhost.UntilOn(d.t, d, "it says "+what, time.Minute, func() bool {
		out = d.Must("cat /var/out 2>/dev/null || true")
		return strings.Contains(out, what)
	})
	return out
}

// lines waits until the upgrade has told its progress so many times.
func (d *debian) lines(n int) {
	d.t.Helper()
	realhost.Until(d.t, "progress", time.Minute, func() bool {
		out := d.Must("cat /var/out 2>/dev/null || true")
		return strings.Count(out, `"progress"`) >= n || strings.Contains(out, "ended\n")
	})
}

// recover is what the worker does after a crash: it asks what happened, and begins anew
// when nothing did.
func (d *debian) recover(what string) {
	d.t.Helper()
	if got := d.act("resume"); got.status == 11 {
		d.must("upgrade", 0)
	} else if got.status != 0 {
		d.t.Fatalf("%s: resume ends with %d:\n%s", what, got.status, got.text)
	}
	d.done()
	d.has(upgraded)
}

func killed(t *testing.T, times int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	realhost.Strike(t, "power cut", times, func(int) bool {
		d := newDebian(t, family("1.0")...)
		d.repository.Add(family("2.0")...)
		d.prepare()
		at, pause := 1+rng.IntN(26), time.Duration(rng.IntN(80))*time.Millisecond
		d.begin()
		d.lines(at)
		time.Sleep(pause)
		what := fmt.Sprintf("cut %s after line %d", pause, at)
		struck := !strings.HasSuffix(d.Must("cat /var/out"), "ended\n")
		d.Cut()
		d.Start()
		// Half of the time it is cut once more, in the midst of the repair.
		if again := rng.IntN(2) == 0; again {
			what += " and in the repair"
			d.Must("(setsid " + d.request("resume") + " >/var/out 2>&1) >/dev/null 2>&1 </dev/null &")
			time.Sleep(time.Duration(100+rng.IntN(900)) * time.Millisecond)
			d.Cut()
			d.Start()
		}
		d.recover(what)
		d.Cut()
		return struck
	})
}

// TestRealKills cuts a host at random lines of dpkg's progress. Each time it ends with
// the planned versions.
func TestRealKills(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	killed(t, realhost.Times(1, 5, 40))
}

// TestRealLostArchives is what a power cut does to data that nobody has synced: lists
// and archives are gone when the host is back in the midst of an upgrade.
func TestRealLostArchives(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	d := newDebian(t, family("1.0")...)
	debs := family("2.0")
	debs[2].Scripts["preinst"] = "touch /run/here; while [ -e /run/hold ]; do sleep 0.1; done\n"
	d.repository.Add(debs...)
	d.prepare()
	d.Must("touch /run/hold")
	d.begin()
	realhost.Until(t, "the third package", time.Minute, func() bool { return strings.TrimSpace(d.Must("ls /run/here 2>/dev/null || true")) != "" })
	d.Cut()
	d.Start()
	d.Must("rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb")
	d.repository.Break(realhost.Down)
	if got := d.act("resume"); got.status == 0 || got.status == 11 {
		t.Fatalf("without archives and repository it ends with %d:\n%s", got.status, got.text)
	}
	d.repository.Break(realhost.None)
	d.recover("lists and archives were lost")
}

// TestRealAgentKilled kills the program alone: apt goes on, and who resumes waits for
// it instead of repairing what is not broken.
func TestRealAgentKilled(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	d := newDebian(t, family("1.0")...)
	debs := family("2.0")
	debs[2].Scripts["preinst"] = "touch /run/here; while [ -e /run/hold ]; do sleep 0.1; done\n"
	d.repository.Add(debs...)
	d.prepare()
	d.Must("touch /run/hold")
	d.begin()
	realhost.UntilOn(t, d, "the third package", time.Minute, func() bool { return strings.TrimSpace(d.Must("ls /run/here 2>/dev/null || true")) != "" })
	pid := strings.TrimSpace(d.Must(`exec 2>/dev/null; for p in /proc/[0-9]*; do [ "$(tr '\0' ' ' <$p/cmdline)" = "/usr/local/bin/osupgrade-agent strategy apt upgrade " ] && echo ${p#/proc/}; done; true`))
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatalf("the program is process %q", pid)
	}
	d.Must("kill -9 " + pid)
	d.start("resume")
	d.says("waiting: process ")
	d.Must("rm /run/hold")
	if out := d.says("ended\n"); strings.Contains(out, "repairing") || strings.Contains(out, `"class"`) {
		t.Errorf("it does not wait for apt, or repairs:\n%s", out)
	}
	d.done()
	d.has(upgraded)
}
