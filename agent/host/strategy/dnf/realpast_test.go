package dnf_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// monday is a time at which a mirror has the repository of the test.
var monday = time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)

// asOfMonday is a release of what the repository had on Monday.
func asOfMonday(packages release.Packages) *release.Release {
	packages.AsOf = monday
	return &release.Release{Packages: &packages}
}

// newDated returns a canary and another host of one repository, which has newer versions of both packages
// and an advisory for one of them, and the pattern of a mirror that has kept that as of Monday.
func newDated(t *testing.T, s system) (canary, rest *machine, snapshot string) {
	t.Helper()
	ones := []pack{{name: "appliance", version: "1.0"}, {name: "appliance-lib", version: "1.0"}}
	canary, rest = newMachine(t, s, ones...), newMachine(t, s, ones...)
	rest.WriteFile("/etc/yum.repos.d/appliance.repo", "[appliance]\nname=appliance\ngpgcheck=0\nbaseurl=http://"+rest.Reach(canary.address)+"\n")
	rest.Must("dnf -q -y --refresh reinstall appliance appliance-lib") // Each machine has built its own.
	canary.WriteFile("/srv/updateinfo.xml", advisory("appliance-lib", "2.0"))
	canary.publish(pack{name: "appliance", version: "2.0"}, pack{name: "appliance-lib", version: "2.0"})
	days := t.TempDir()
	if err := os.CopyFS(filepath.Join(days, monday.Format(time.DateOnly), "appliance"), os.DirFS(canary.served)); err != nil {
		t.Fatal(err)
	}
	mirror := httptest.NewServer(http.FileServer(http.Dir(days)))
	t.Cleanup(mirror.Close)
	return canary, rest, mirror.URL + "/{date}/{repo}"
}

// same fails the test unless both machines have the same packages, byte for byte.
func same(t *testing.T, canary, rest *machine) {
	t.Helper()
	const all = "rpm -qa --qf '%{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE} %{ARCH} %{SHA256HEADER}\\n' | sort"
	if one, other := canary.Must(all), rest.Must(all); withoutShell(one) != withoutShell(other) {
		t.Errorf("the canary has\n%s\nand the other host\n%s", one, other)
	}
}

// TestRealAsOf prepares a canary on Monday and another host on Tuesday, when the repository has
// gone on. As of Monday both get the same packages, byte for byte.
func TestRealAsOf(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		canary, rest, snapshot := newDated(t, s)
		canary.release = asOfMonday(release.Packages{})
		canary.left("prepare", message.Repository, remedy.DNFNoPast)
		canary.options["Snapshot"], rest.options["Snapshot"] = snapshot, snapshot
		first := canary.prepare()
		wantPlan(t, first, "appliance-lib.noarch 1.0-1 → 2.0-1", "appliance.noarch 1.0-1 → 2.0-1")

		// The repository goes on.
		canary.publish(pack{name: "appliance", version: "3.0"}, pack{name: "appliance-lib", version: "3.0"})
		canary.must("upgrade")
		canary.done()
		wantPlan(t, rest.prepare(), "appliance-lib.noarch 1.0-1 → 3.0-1", "appliance.noarch 1.0-1 → 3.0-1")
		rest.release = asOfMonday(release.Packages{Select: release.Security, Only: []string{"appliance"}})
		wantPlan(t, rest.prepare(), "appliance-lib.noarch stays 1.0-1, not 2.0-1: not named by the release", "appliance.noarch stays 1.0-1, not 2.0-1: not a security update")
		rest.release = asOfMonday(release.Packages{Except: []string{"*-lib"}})
		wantPlan(t, rest.prepare(), "appliance.noarch 1.0-1 → 2.0-1", "appliance-lib.noarch stays 1.0-1, not 2.0-1: excepted by the release")
		rest.release = asOfMonday(release.Packages{Only: []string{"appliance-l*"}})
		wantPlan(t, rest.prepare(), "appliance-lib.noarch 1.0-1 → 2.0-1", "appliance.noarch stays 1.0-1, not 2.0-1: not named by the release")
		rest.release = asOfMonday(release.Packages{})
		rest.release.Installs = map[string]string{"appliance": "2.0-1"}
		rest.prepare()
		rest.Must("dnf -q makecache --refresh") // As a timer does, between prepare and upgrade.
		rest.must("upgrade")
		rest.done()
		same(t, canary, rest)
		if plan := rest.must("plan"); strings.TrimSpace(plan.text) != "{}" {
			t.Errorf("what the release has is there, and the plan is %s", plan.text)
		}
		rest.Must("printf '[theirs]\\nname=theirs\\ngpgcheck=0\\nbaseurl=http://127.0.0.1/\\n' >/etc/yum.repos.d/theirs.repo")
		rest.fails("prepare", message.Repository, "theirs")
	})
}

// TestRealSecurityAsOf upgrades a canary on Monday and another host on Tuesday to the security updates of
// Monday, when the repository has gone on and has advisories for both packages. Each gets the one
// package that had an advisory on Monday, in the version of that day.
func TestRealSecurityAsOf(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		canary, rest, snapshot := newDated(t, s)
		upgrade := func(m *machine) {
			t.Helper()
			m.options["Snapshot"], m.release = snapshot, asOfMonday(release.Packages{Select: release.Security})
			wantPlan(t, m.prepare(), "appliance-lib.noarch 1.0-1 → 2.0-1", "appliance.noarch stays 1.0-1, not 2.0-1: not a security update")
			m.must("upgrade")
			m.done()
			m.has("appliance-1.0-1.noarch", "appliance-lib-2.0-1.noarch")
		}
		upgrade(canary)
		canary.WriteFile("/srv/updateinfo.xml", advisory("appliance", "3.0"))
		canary.publish(pack{name: "appliance", version: "3.0"}, pack{name: "appliance-lib", version: "3.0"})
		rest.Must("dnf -q makecache --refresh")
		upgrade(rest)
		same(t, canary, rest)
	})
}

// withoutShell leaves out the package that each machine of the tests builds for itself.
func withoutShell(list string) string {
	var kept []string
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "shell ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
