package apt_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// remedy is the commands in what a failure says.
var remedy = regexp.MustCompile(`run: (.*?)(; the last repair said|\\?"|\n|$)`)

// follow runs the commands that a failure prints, as a person does who has no terminal.
func (d *debian) follow(text string) {
	d.t.Helper()
	said := remedy.FindStringSubmatch(text)
	if said == nil {
		d.t.Fatalf("there is no command in\n%s", text)
	}
	d.t.Logf("it is followed: %s", said[1])
	d.Must("export DEBIAN_FRONTEND=noninteractive; " + strings.ReplaceAll(said[1], "apt-get ", "apt-get -q -y "))
	if audit := d.Must("dpkg --audit"); audit != "" {
		d.t.Errorf("after %s the audit says: %s", said[1], audit)
	}
}

// heals has an action fail with a remedy, follows that, and has the next run upgrade the host.
func (d *debian) heals(action, class, says string) {
	d.t.Helper()
	got := d.act(action)
	if got.status == 0 || got.status == 10 || got.class != class || !strings.Contains(got.text, says) {
		d.t.Fatalf("%s ends with %d of class %q, want %q and %q:\n%s", action, got.status, got.class, class, says, got.text)
	}
	d.follow(got.text)
	d.prepare()
	d.must("upgrade", 0)
	d.done()
}

// holding are packages of which the third and the last, on which none depends, wait in their
// preinst while /run/hold is there.
func holding(version string) []realhost.Deb {
	alone := simple("appliance-alone", version, "")
	debs := append(family(version), alone)
	for _, i := range []int{2, 4} {
		debs[i].Scripts = map[string]string{"preinst": "touch /run/here; while [ -e /run/hold ]; do sleep 0.1; done\n"}
	}
	return debs
}

// othersKilled has a person install a package, and kills that in the midst of its unpacking.
func (d *debian) othersKilled(name string) {
	d.t.Helper()
	d.Must("apt-get -q update; touch /run/hold; rm -f /run/here; (setsid apt-get -q -y install " + name + " >/dev/null 2>&1) >/dev/null 2>&1 </dev/null &")
	realhost.UntilOn(d.t, d, "the unpacking", time.Minute, func() bool { return strings.TrimSpace(d.Must("ls /run/here 2>/dev/null || true")) != "" })
	d.Must("pkill -9 -x apt-get; pkill -9 -x dpkg; rm /run/hold")
}

// TestRealRemedies leaves hosts in states that only a person may repair, and follows the
// commands that the failure prints: the host is healthy then, and the next run upgrades it.
func TestRealRemedies(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	for _, row := range []struct {
		name string
		test func(d *debian)
	}{
		{"others unpacked packages and did not configure them", func(d *debian) {
			d.Must("cd /var/cache/apt/archives && apt-get -q update && apt-get -q -y -d install appliance-3 && dpkg --unpack appliance-*_2.0_all.deb")
			d.repository.Add(family("3.0")...)
			d.heals("prepare", "install", "dpkg has not finished with appliance-0")
		}},
		{"dpkg of others was killed while it unpacked", func(d *debian) {
			d.othersKilled("appliance-3")
			d.repository.Add(holding("3.0")...)
			d.heals("prepare", "install", "dpkg has not finished with appliance-2")
		}},
		{"dpkg of others was killed while it unpacked a package that none needs", func(d *debian) {
			d.othersKilled("appliance-alone")
			d.heals("prepare", "install", "dpkg has not finished with appliance-alone")
		}},
		{"the same and its old version is in no repository", func(d *debian) {
			d.othersKilled("appliance-alone")
			d.Must("rm -f /var/cache/apt/archives/*.deb")
			d.repository.Publish(holding("3.0")...)
			d.heals("prepare", "install", "dpkg has not finished with appliance-alone")
		}},
		{"dpkg of others was killed between prepare and upgrade", func(d *debian) {
			d.prepare()
			d.othersKilled("appliance-alone")
			d.heals("upgrade", "install", "dpkg has not finished with appliance-alone")
		}},
		{"an own upgrade lost an archive while no repository answers", func(d *debian) {
			d.prepare()
			d.killDpkg()
			d.Must("rm -f /var/cache/apt/archives/*.deb")
			d.repository.Break(realhost.Down)
			got := d.act("resume")
			if got.class != "transient" {
				d.t.Fatalf("resume ends with %d of class %q:\n%s", got.status, got.class, got.text)
			}
			d.repository.Break(realhost.None)
			d.follow(got.text)
			d.prepare()
			d.must("upgrade", 0)
			d.done()
		}},
		{"the lists are gone", func(d *debian) {
			d.Must("rm -rf /var/lib/apt/lists/*")
			d.heals("plan", "repository", "no lists of packages")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := newDebian(t, append(family("1.0"), simple("appliance-alone", "1.0", ""))...)
			d.repository.Add(holding("2.0")...)
			row.test(d)
		})
	}
}
