package apt_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// mirror serves two releases of a distribution at one address, as a mirror does.
func mirror(t *testing.T, releases map[string]*realhost.Repository) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for codename, repository := range releases {
			if strings.HasPrefix(r.URL.Path, "/dists/"+codename+"/") {
				http.StripPrefix("/dists/"+codename, repository).ServeHTTP(w, r)
				return
			}
			if found := httptest.NewRecorder(); strings.HasPrefix(path.Clean(r.URL.Path), "/pool/") {
				if repository.ServeHTTP(found, r.Clone(r.Context())); found.Code < 400 {
					repository.ServeHTTP(w, r)
					return
				}
			}
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func newRelease(t *testing.T, suite, codename string, debs ...realhost.Deb) *realhost.Repository {
	t.Helper()
	r := realhost.NewRepository(t)
	r.Describe(realhost.Release{Origin: "Debian", Label: "Debian", Suite: suite, Codename: codename})
	r.Publish(debs...)
	return r
}

// changes are the changes of a plan and what it holds back of the packages of the test.
func changes(plan message.ChangeSet) []string {
	return slices.DeleteFunc(texts(plan), func(text string) bool { return !strings.HasPrefix(text, "appliance") })
}

// TestRealRelease goes from one release to the next: what is not ready is refused, the
// sources change when the upgrade begins, and are put back if it does not.
func TestRealRelease(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	old := []realhost.Deb{simple("appliance", "1.0", ""), simple("appliance-old", "1.0", "")}
	d := newDebian(t, append(old, simple("appliance-theirs", "1.0", ""))...)
	next := simple("appliance", "2.0", "")
	next.Fields = []string{"Conflicts: appliance-old\nDepends: appliance-new"}
	bookworm := newRelease(t, "stable", "bookworm", append(old, simple("appliance", "1.1", ""))...)
	trixie := newRelease(t, "testing", "trixie", next, simple("appliance-new", "2.0", ""))
	at := mirror(t, map[string]*realhost.Repository{"bookworm": bookworm, "stable": bookworm, "trixie": trixie})
	d.repository.Publish(simple("appliance-theirs", "1.0", ""))
	const signed = "/etc/apt/keyrings/appliance.asc"
	d.WriteFile("/etc/apt/sources.list.d/debian.sources", fmt.Sprintf("Types: deb\nURIs: %s\nSuites: bookworm\nComponents: main\nSigned-By: %s\n", at, signed))
	const sources = "cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/appliance.list"
	before := d.Must(sources)
	d.options["Mode"], d.options["Release"] = "release", "trixie"

	d.must("plan", 11) // Nobody has fetched the lists of trixie.
	d.fails("prepare", "install", "1 package of bookworm can be upgraded still (appliance 1.0 → 1.1); first upgrade this host with apt-mode all")
	d.left("prepare", "install", remedy.AptUpgradeFirst)
	d.options["Mode"] = "all"
	delete(d.options, "Release")
	d.healed()
	d.options["Mode"], d.options["Release"] = "release", "trixie"
	d.Must("apt-mark hold appliance")
	d.fails("prepare", "install", "appliance held by apt-mark, which a release upgrade cannot respect")
	realhost.Follow(t, d, remedy.AptUnhold, d.left("prepare", "install", remedy.AptUnhold))
	d.Must("sed -i s/bookworm/stable/ /etc/apt/sources.list.d/debian.sources")
	d.left("prepare", "repository", remedy.AptNoSuite)
	d.Must("sed -i s/stable/bookworm/ /etc/apt/sources.list.d/debian.sources")
	d.fails("prepare", "install", "appliance-old would be removed, and apt-removals is refuse")
	d.options["Removals"] = "allow"
	trixie.Break(realhost.Down)
	d.fails("prepare", "transient", "503")
	trixie.Break(realhost.None)
	if now := d.Must(sources); now != before {
		t.Errorf("prepare that failed has changed the sources:\n%s", now)
	}
	plan := d.prepare()
	want := []string{"appliance 1.1 → 2.0", "appliance-new 2.0 (new)", "appliance-old 1.0 (removed)", "appliance-theirs stays 1.0, not : no source of trixie has it"}
	if got := changes(plan); !slices.Equal(got, want) {
		t.Errorf("the plan is\n%s", strings.Join(got, "\n"))
	}
	if now := d.Must(sources); now != before {
		t.Errorf("prepare has changed the sources:\n%s", now)
	}
	d.Must("echo '# mine' >>/etc/apt/sources.list.d/debian.sources")
	d.left("upgrade", "install", remedy.AptChangedFile)
	before = d.Must(sources)
	d.prepare()

	d.Must(backup + "; rm /var/cache/apt/archives/*.deb")
	trixie.Break(realhost.Damaged)
	d.fails("upgrade", "artifact")
	if now := d.Must(sources); now != before {
		t.Errorf("an upgrade that was refused has left the sources:\n%s", now)
	}
	trixie.Break(realhost.None)
	d.must("upgrade", 0)
	d.done()
	d.has("ii appliance 2.0\nii appliance-new 2.0\nii appliance-theirs 1.0")
	after := d.Must(sources)
	if !strings.Contains(after, "Suites: trixie\n") || !strings.Contains(after, "# disabled by osupgrade for the release upgrade: deb [signed-by="+signed) {
		t.Errorf("the sources are\n%s", after)
	}
	got := d.must("rollback", 11)
	if !strings.Contains(got.text, "nothing leads back to the release before") {
		t.Errorf("rollback says\n%s", got.text)
	}
	realhost.Remedy(t, remedy.AptRelease, got.text)
	d.Must(restore)
	d.has("ii appliance 1.1\nii appliance-old 1.0\nii appliance-theirs 1.0")
	if now := d.Must(sources); now != before {
		t.Errorf("the backup has the sources\n%s", now)
	}
	d.healed()
	d.has("ii appliance 2.0\nii appliance-new 2.0\nii appliance-theirs 1.0")
}

// backup keeps what an upgrade changes on a host of the test, and restore puts it back, without
// what came later.
const (
	backup  = "tar -C / --listed-incremental=/srv/snapshot -cf /srv/backup.tar etc/apt usr/share var/lib/apt var/lib/dpkg"
	restore = "tar -C / --listed-incremental=/dev/null -xf /srv/backup.tar"
)
