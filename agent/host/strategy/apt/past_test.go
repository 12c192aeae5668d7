package apt

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

var monday = time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)

// byDay is the time of most tests, by a mirror with dates.
var byDay = dating{"https://mirror.example/{date}/{host}/{path}", monday}

func TestDating(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ file, text, want string }{
		"one line": {
			"sources.list", "# http://repository.example\n\ndeb  [arch=amd64 signed-by=/usr/share/a.gpg]\thttp://repository.example/debian/   bookworm\tmain # http://x\ndeb-src https://other.example ./",
			"# http://repository.example\n\ndeb  [arch=amd64 signed-by=/usr/share/a.gpg]\thttps://mirror.example/2026-11-23/repository.example/debian   bookworm\tmain # http://x\ndeb-src https://mirror.example/2026-11-23/other.example/ ./",
		},
		"deb822": {
			"debian.sources", "# http://x\nTypes: deb\nURIs: http://repository.example/debian\n http://repository.example/debian-security\nSuites: bookworm\nSigned-By: /usr/share/a.gpg\n\nEnabled: no\nTypes: deb\nURIs: file:/srv\nSuites: a\n",
			"# http://x\nTypes: deb\nURIs: https://mirror.example/2026-11-23/repository.example/debian\n https://mirror.example/2026-11-23/repository.example/debian-security\nSuites: bookworm\nSigned-By: /usr/share/a.gpg\n\nEnabled: no\nTypes: deb\nURIs: file:/srv\nSuites: a\n",
		},
		"nothing": {"a.list", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := byDay.file(row.file, row.text); err != nil || got != row.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, row.want)
			}
		})
	}
	for name, row := range map[string]struct{ file, text, want string }{
		"a folder":     {"a.list", "\ndeb file:/srv/apt ./\n", "line 2: \"file:/srv/apt\" is not at an address that apt-snapshot could have as of a time; set apt-snapshot"},
		"a disk":       {"a.sources", "Types: deb\nURIs: cdrom:[Debian 12]/\nSuites: bookworm\n", "\"cdrom:[Debian\" is not at an address"},
		"no source":    {"a.list", "hello\n", "line 1: \"hello\" is not a source"},
		"a wrong name": {"a.list", "deb http://a%zz/ ./\n", "is not at an address"},
	} {
		if got, err := byDay.file(row.file, row.text); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, row.want)
		}
	}
}

// FuzzDating holds that each source gets an address of the time, and that all else stays.
func FuzzDating(f *testing.F) {
	f.Add(false, "deb [a=b] http://repository.example/debian bookworm main # x\n# y\n")
	f.Add(true, "Types: deb\nURIs: http://repository.example/debian\n http://o\nSuites: a\n\n\nTypes: deb\nURIs:http://o\n")
	f.Fuzz(func(t *testing.T, stanzas bool, text string) {
		name := map[bool]string{false: "a.list", true: "a.sources"}[stanzas]
		dated, err := byDay.file(name, text)
		if err != nil {
			return
		}
		if strings.Count(dated, "\n") != strings.Count(text, "\n") {
			t.Fatalf("%q is %q", text, dated)
		}
		if stanzas {
			return
		}
		for line := range strings.Lines(dated) {
			if words, err := splitSource(line); err != nil || words != nil && !strings.HasPrefix(words.uri, "https://mirror.example/2026-11-23/") {
				t.Fatalf("%q has %q, %v", dated, line, err)
			}
		}
	})
}

// of is a job whose run has a release.
func of(packages release.Packages, plan message.ChangeSet) strategy.Job {
	j := job(plan)
	j.Release = &release.Release{Packages: &packages}
	return j
}

// TestReleaseDecides has a release say what is installed, in whatever way the host is configured.
func TestReleaseDecides(t *testing.T) {
	t.Parallel()
	const excepted, unnamed = " stays 1, not 2: excepted by the release", " stays 1, not 2: not named by the release"
	for name, row := range map[string]struct {
		of   release.Packages
		want []string
	}{
		"all":          {release.Packages{Select: release.All}, []string{"a 1 → 2", "b 1 → 2", "c 1 → 2"}},
		"only some":    {release.Packages{Select: release.All, Only: []string{"a", "c*"}}, []string{"a 1 → 2", "c 1 → 2", "b" + unnamed}},
		"all but some": {release.Packages{Select: release.All, Except: []string{"a", "c*"}}, []string{"b 1 → 2", "a" + excepted, "c" + excepted}},
		"none":         {release.Packages{Select: release.All, Only: []string{"d"}}, []string{"a" + unnamed, "b" + unnamed, "c" + unnamed}},
		"a list":       {release.Packages{Select: release.Listed, Only: []string{"a", "b=2"}}, []string{"a 1 → 2", "b 1 → 2"}},
		"not a list":   {release.Packages{Select: release.Listed, Only: []string{"*"}, Except: []string{"b"}}, []string{"a 1 → 2", "c 1 → 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			s := f.strategy()
			plan, err := s.Prepare(t.Context(), of(row.of, message.ChangeSet{}))
			got := message.ChangeTexts(plan.Changes)
			for _, h := range plan.Held {
				got = append(got, h.Name+" stays "+h.Version+", not "+h.Offered+": "+h.Reason)
			}
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("the plan is\n%s\n%v, want\n%s", strings.Join(got, "\n"), err, strings.Join(row.want, "\n"))
			}
		})
	}
	s := newFake(t).strategy()
	for name, row := range map[string]struct {
		of    release.Release
		class message.Class
		want  string
	}{
		"images":               {release.Release{Images: []release.Image{{URL: "https://mirror.example/a"}}}, message.Artifact, "is of images; this host carries out releases of packages"},
		"an option of apt":     {release.Release{Packages: &release.Packages{Select: release.Listed, Only: []string{"-oAPT::X=1"}}}, message.Artifact, `only of the release: "-oAPT::X=1" is not a package`},
		"what is not there":    {release.Release{Packages: &release.Packages{Select: release.Listed, Only: []string{"z"}}}, message.Install, "only of the release: z is not installed"},
		"more than it selects": {release.Release{Packages: &release.Packages{Only: []string{"a"}}, Installs: map[string]string{"b": "2"}}, message.Repository, "gets b 1 and not 2, which the release installs"},
	} {
		j := job(message.ChangeSet{})
		j.Release = &row.of
		if plan, err := s.Prepare(t.Context(), j); strategy.ClassOf(err) != row.class || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: the plan is %v, %v", name, plan, err)
		}
	}
}

// TestMissingInstalls: an upgrade by plan is not done while the host lacks what the release installs.
func TestMissingInstalls(t *testing.T) {
	t.Parallel()
	f, plan := prepared(t)
	if _, err := f.strategy().Upgrade(t.Context(), job(plan)); err != nil {
		t.Fatal(err)
	}
	j := of(release.Packages{}, plan)
	j.Release.Installs = map[string]string{"a": "2", "kernel": "6.1.0-18-amd64"}
	if missing, err := f.strategy().Missing(t.Context(), j); err != nil || len(missing) > 0 {
		t.Errorf("missing are %v, %v", missing, err)
	}
	j.Release.Installs["kernel"] = "6.2"
	if missing, err := f.strategy().Missing(t.Context(), j); err != nil || len(missing) != 1 || missing[0].String() != "kernel 6.1.0-18-amd64 → 6.2" {
		t.Errorf("missing are %v, %v", missing, err)
	}
}

// TestAsOf has a mirror go on after the canary was prepared. As of the same time a host gets what
// the canary got, and otherwise what is there now.
func TestAsOf(t *testing.T) {
	t.Parallel()
	for name, pattern := range map[string]strategy.SnapshotURL{"snapshots of apt": "", "a mirror with dates": "http://mirror.example/{date}/{path}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.write("etc/apt/sources.list", "deb http://x ./\n")
			f.then = map[string]string{"a": "1.5", "b": "1.5", "c": "1"}
			s := f.strategy()
			s.Snapshot = pattern
			asOf := of(release.Packages{Select: release.All, AsOf: monday}, message.ChangeSet{})
			if plan, err := s.Plan(t.Context(), asOf); !errors.Is(err, strategy.ErrNoPlan) {
				t.Errorf("before the lists are there the plan is %v, %v", plan, err)
			}
			plan, err := s.Prepare(t.Context(), asOf)
			if got := message.ChangeTexts(plan.Changes); err != nil || !slices.Equal(got, []string{"a 1 → 1.5", "b 1 → 1.5"}) {
				t.Fatalf("as of then the plan is %v, %v", got, err)
			}
			if again, err := s.Plan(t.Context(), asOf); err != nil || len(again.Changes) != 2 {
				t.Errorf("once they are there the plan is %v, %v", again, err)
			}
			asOf.Plan = plan
			if outcome, err := s.Upgrade(t.Context(), asOf); err != nil || outcome != strategy.Done || f.dpkg["a"].version != "1.5" || f.dpkg["c"].version != "1" {
				t.Errorf("the upgrade ends with %d, %v: %+v", outcome, err, f.dpkg)
			}
			if missing, err := s.Missing(t.Context(), asOf); err != nil || len(missing) > 0 {
				t.Errorf("missing are %v, %v", missing, err)
			}
			if plan, err := s.Prepare(t.Context(), asOf); err != nil || len(plan.Changes) > 0 {
				t.Errorf("it has all of then, and the plan is %v, %v", plan, err)
			}
			if plan, err := s.Prepare(t.Context(), job(message.ChangeSet{})); err != nil || len(plan.Changes) != 3 {
				t.Errorf("without a time the plan is %v, %v", plan, err)
			}
			f.write("etc/apt/sources.list.d/local.list", "deb file:/srv ./\n")
			f.local = true
			if plan, err := s.Prepare(t.Context(), asOf); strategy.ClassOf(err) != message.Repository || !strings.Contains(err.Error(), string(remedy.AptNoPast)) {
				t.Errorf("with a source that has no past the plan is %v, %v", plan, err)
			}
			later := of(release.Packages{Select: release.All, AsOf: monday.Add(24 * time.Hour)}, message.ChangeSet{})
			f.local = false
			if err := os.Remove(filepath.Join(f.root, "etc/apt/sources.list.d/local.list")); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Prepare(t.Context(), later); err != nil {
				t.Fatal(err)
			}
			if left, err := filepath.Glob(filepath.Join(f.root, "state/dated/*")); err != nil || len(left) > 1 {
				t.Errorf("the sources of a time that is over are left: %v, %v", left, err)
			}
		})
	}
}
