package apt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// versions returns the versions of the packages of a host, byte for byte.
func (d *debian) versions() string {
	d.t.Helper()
	return d.Must(`dpkg-query -W -f '${Package} ${Architecture} ${Version} ${db:Status-Abbrev}\n'`)
}

var (
	plain    = realhost.Release{Origin: "Appliance", Label: "Appliance", Suite: "stable", Codename: "stable"}
	security = realhost.Release{Origin: "Appliance", Label: "Appliance-Security", Suite: "stable-security", Codename: "works-security"}
)

// TestRealAsOf prepares a canary on Monday and the rest of the hosts on Tuesday, when the
// repositories have gone on. As of Monday both get the same packages, byte for byte.
func TestRealAsOf(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	at := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	asOf := func(packages release.Packages) *release.Release {
		packages.AsOf = at
		return &release.Release{Packages: &packages}
	}
	ones := []realhost.Deb{simple("appliance", "1.0", ""), simple("appliance-lib", "1.0", ""), simple("appliance-other", "1.0", "")}
	canary, rest := newDebian(t, ones...), newDebian(t, ones...)
	fixes := realhost.NewRepository(t)
	fixes.Describe(security)
	for _, d := range []*debian{canary, rest} {
		realhost.AddRepository(d, "appliance", canary.repository)
		realhost.AddRepository(d, "fixes", fixes)
	}
	monday := append(ones, simple("appliance", "2.0", ""), simple("appliance-lib", "2.0", ""), simple("appliance-other", "2.0", ""))
	canary.repository.Publish(monday...)
	fixes.Publish(simple("appliance-lib", "1.1", ""))
	mirror := realhost.NewPast(t)
	mirror.Keep("2026-11-23", canary.repository.Address(), plain, monday...)
	mirror.Keep("2026-11-23", fixes.Address(), security, simple("appliance-lib", "1.1", ""))

	wantPlan(t, canary.prepare(), "appliance 1.0 → 2.0", "appliance-lib 1.0 → 2.0", "appliance-other 1.0 → 2.0")
	canary.release = asOf(release.Packages{})
	canary.left("prepare", "repository", remedy.AptNoPast) // apt 2.6 knows no snapshots.
	canary.options["Snapshot"] = "http://" + mirror.Address() + "/{date}/{host}/{path}"
	rest.options["Snapshot"] = canary.options["Snapshot"]
	sources := canary.Must("cat /etc/apt/sources.list.d/*; ls /var/lib/apt/lists")
	first := canary.prepare()

	// The repositories go on, and forget what they had.
	canary.repository.Publish(simple("appliance", "3.0", ""), simple("appliance-lib", "3.0", ""), simple("appliance-other", "3.0", ""))
	fixes.Publish(simple("appliance-lib", "3.1", ""))
	mirror.Keep("2026-11-24", canary.repository.Address(), plain, simple("appliance", "3.0", ""))
	canary.must("upgrade", 0)
	canary.done()

	wantPlan(t, rest.prepare(), "appliance 1.0 → 3.0", "appliance-lib 1.0 → 3.1", "appliance-other 1.0 → 3.0")
	rest.release = asOf(release.Packages{Select: release.Security})
	wantPlan(t, rest.prepare(), "appliance-lib 1.0 → 1.1", "appliance stays 1.0, not 2.0: not a security update", "appliance-other stays 1.0, not 2.0: not a security update")
	rest.release = asOf(release.Packages{Only: []string{"appliance", "appliance-l*"}, Except: []string{"appliance-lib"}})
	wantPlan(t, rest.prepare(), "appliance 1.0 → 2.0", "appliance-lib stays 1.0, not 2.0: excepted by the release", "appliance-other stays 1.0, not 2.0: not named by the release")
	rest.release = asOf(release.Packages{})
	rest.release.Installs = map[string]string{"appliance": "2.0", "appliance-lib": "2.0"}
	second := rest.prepare()
	if one, other := strings.Join(texts(first), "\n"), strings.Join(texts(second), "\n"); one != other {
		t.Errorf("the plan of Monday is\n%s\nand that of Tuesday\n%s", one, other)
	}
	rest.Must("apt-get -q update") // As a timer does, between prepare and upgrade.
	rest.must("upgrade", 0)
	rest.done()
	if one, other := canary.versions(), rest.versions(); one != other {
		t.Errorf("the canary has\n%s\nand the rest\n%s", one, other)
	}
	rest.has("ii appliance 2.0\nii appliance-lib 2.0\nii appliance-other 2.0")
	if got := canary.Must("cat /etc/apt/sources.list.d/*; ls /var/lib/apt/lists"); got != sources {
		t.Errorf("the sources and lists of the host were\n%s\nand are\n%s", sources, got)
	}
	if plan := rest.must("plan", 0); strings.TrimSpace(plan.text) != "{}" {
		t.Errorf("what the release has is there, and the plan is %s", plan.text)
	}
	rest.release.Installs["appliance"] = "2.5"
	rest.fails("prepare", "repository", "gets appliance 2.0 and not 2.5, which the release installs")
	rest.WriteFile("/etc/apt/sources.list.d/theirs.list", fmt.Sprintf("deb [signed-by=/etc/apt/keyrings/appliance.asc] http://%s/theirs/ ./\n", mirror.Address()))
	rest.fails("prepare", "repository", "does not have a Release file")
}

// TestRealSnapshots has apt itself know where the snapshots of a repository are.
func TestRealSnapshots(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.DNF5)
	t.Parallel()
	d := newDebianOf(t, realhost.DNF5, simple("appliance", "1.0", ""))
	mirror := realhost.NewPast(t)
	mirror.Keep("20261123T060000Z", "x", plain, simple("appliance", "2.0", ""))
	d.repository.Publish(simple("appliance", "3.0", ""))
	d.release = &release.Release{Packages: &release.Packages{AsOf: time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)}}
	d.must("plan", 11) // The lists of the snapshot are not there.
	d.left("prepare", "repository", remedy.AptNoPast)
	d.WriteFile("/etc/apt/apt.conf.d/snapshots", fmt.Sprintf("Acquire::Snapshots::URI::Label::Appliance \"http://%s/@SNAPSHOTID@/x/\";\n", mirror.Address()))
	wantPlan(t, d.prepare(), "appliance 1.0 → 2.0")
	d.must("upgrade", 0)
	d.done()
	d.has("ii appliance 2.0")
	d.release, d.plan = nil, message.ChangeSet{}
	wantPlan(t, d.prepare(), "appliance 2.0 → 3.0")
}
