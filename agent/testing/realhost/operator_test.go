package realhost_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// TestRealOperator is a night of an operator who knows nothing but what status says. The mirror
// of h01 is down, h02 hangs in the script of a package, and h03 loses its power in the midst of
// its upgrade. Each is named, with a command that is then typed, and at the end all hosts have
// the new version.
func TestRealOperator(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	site, hosts, mirrors := threeMirrors(t)
	hosts["h02"].Must("touch /root/hang")
	hosts["h03"].Must("touch /root/hang")
	types := func(args ...string) string {
		t.Helper()
		said, code := site.Command(args...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, said)
		}
		return said
	}
	// shows waits until status has a text, and returns its first group.
	shows := func(text string) string {
		t.Helper()
		var found []string
		said := ""
		realhost.Until(t, "status shows "+text, patience, func() bool {
			said = types("status", "--utc")
			found = regexp.MustCompile(text).FindStringSubmatch(said)
			return found != nil
		})
		t.Logf("%s", said)
		return found[len(found)-1]
	}
	// follows types a command that status names.
	follows := func(command string) string {
		t.Helper()
		command = strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(command), "osupgrade-agent "), "…", "because")
		return types(strings.Fields(command)...)
	}

	mirrors["h01"].Break(realhost.Down)
	file := filepath.Join(t.TempDir(), "rollout.yaml")
	if err := os.WriteFile(file, []byte("rollout: {stages: [{name: all, max-unavailable: 3}], prepare-patience: 10s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	types("apply", "-f", file)
	types("start", "--override-window", "--reason", "CVE-2026-1", "--duration", "1h")
	look := shows(`look at 1 host that fails and tries again \(h01\): .*503.*: (osupgrade-agent runs \d+ --host h01 --output)`)
	if said := follows(look); !strings.Contains(said, "503") {
		t.Errorf("the output of h01 is %s", said)
	}
	mirrors["h01"].Break(realhost.None)

	shows(`h03 .* upgrading .*migrating`)
	hosts["h03"].Cut()
	hosts["h03"].WriteFile("/root/hang-no-more", "")
	hosts["h03"].Start()
	shows(`h03 .* (upgraded) `)
	shows(`h01 .* (upgraded) `)

	shows(`h02 .* upgrading .*migrating`)
	types("release", "h02", "--reason", "it hangs", "--yes")
	look = shows(`look at h02, which may still be at work on the upgrade of run \d+: runs skip it until it answers: +(osupgrade-agent runs \d+ --host h02 --output)`)
	if said := follows(look); !strings.Contains(said, "migrating the database") {
		t.Errorf("the output of h02 is %s", said)
	}
	hosts["h02"].Must("rm /root/hang; pkill -x sleep")
	for n := range 2 {
		again := shows(`(retry \d+ --override-window --reason …)`)
		site.Command(append(strings.Fields(strings.ReplaceAll(again, "…", "ended")), "--wait")...)
		if state := types("hosts", "--utc"); strings.Count(state, "appliance 2.0") == len(hosts) {
			break
		} else if n == 1 {
			t.Errorf("not all hosts are upgraded:\n%s", state)
		}
	}
	for name, host := range hosts {
		if got := host.Must("dpkg-query -W -f '${db:Status-Abbrev}${Version}' appliance"); got != "ii 2.0" {
			t.Errorf("%s has %q", name, got)
		}
	}
}

// hanging is the appliance with a script that does not end where somebody has made it so.
func hanging(version string) realhost.Deb {
	d := appliance(version)
	d.Scripts["postinst"] = "if [ -e /root/hang ] && [ ! -e /root/hang-no-more ]; then echo migrating the database; sleep 36000; fi\n" + d.Scripts["postinst"]
	return d
}

// threeMirrors is a site with the hosts h01 to h03, each with a mirror of its own, which has a
// version that hangs where it is told to.
func threeMirrors(t *testing.T) (*realhost.Site, map[string]*realhost.Container, map[string]*realhost.Repository) {
	t.Helper()
	site := realhost.NewSite(t)
	mirrors := map[string]*realhost.Repository{}
	hosts := map[string]*realhost.Container{}
	names := []string{"h01", "h02", "h03"}
	for _, name := range names {
		mirrors[name] = realhost.NewRepository(t)
		mirrors[name].Publish(appliance("1.0"))
		c := realhost.NewContainer(t, realhost.ContainerOptions{Hostname: name})
		realhost.AddRepository(c, "appliance", mirrors[name])
		c.Start()
		c.Must("apt-get -q update && apt-get -q -y install appliance")
		c.Cut()
		site.AddHost(c, name, settings)
		c.Start()
		hosts[name] = c
		mirrors[name].Add(hanging("2.0"))
	}
	site.Online(names...)
	return site, hosts, mirrors
}
