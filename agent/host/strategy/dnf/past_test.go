package dnf

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"nothing is wrong":        {func(*Options) {}, ""},
		"a version of a reported": {func(o *Options) { o.Versions = []string{"nginx=1"} }, `dnf-versions: "nginx=1" names a version`},
		"no state":                {func(o *Options) { o.StateDir = "" }, "state folder"},
		"a negative limit":        {func(o *Options) { o.LockLimit = -1 }, "dnf-lock-limit: -1ns is invalid"},
		"a mirror with dates":     {func(o *Options) { o.Snapshot = "https://mirror.example/{date}/{repo}/$basearch" }, ""},
		"a mirror without dates":  {func(o *Options) { o.Snapshot = "https://mirror.example/{repo}" }, "dnf-snapshot: \"https://mirror.example/{repo}\" has no date"},
		"a path of a repository":  {func(o *Options) { o.Snapshot = "https://mirror.example/{date}/{path}" }, "has {path}; use {date}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{StateDir: t.TempDir()}
			row.change(&o)
			if _, err := New(o); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestParseRepositories(t *testing.T) {
	t.Parallel()
	for g := range generations {
		_, printed := recorded(t, g, "repolist")
		if got := parseRepositories(printed); !slices.Equal(got, []string{"appliance", "c-x86_64"}) {
			t.Errorf("%s has the repositories %q", g.name, got)
		}
	}
}

// FuzzRepositories: an id is one word, so an option for a repository is one option.
func FuzzRepositories(f *testing.F) {
	for g := range generations {
		_, printed := recorded(f, g, "repolist")
		f.Add(printed)
	}
	f.Fuzz(func(t *testing.T, printed string) {
		for _, id := range parseRepositories(printed) {
			if id == "" || strings.ContainsAny(id, " \t\n") {
				t.Errorf("%q has the repository %q", printed, id)
			}
		}
	})
}

// repositories are what a fake dnf has: the newest versions of a, b and c, which are 1-1 on the host.
type repositories struct {
	// now and then are what there is now and as of another time.
	now, then map[string]string
	// asked are the arguments of what dnf was asked to do.
	asked [][]string
}

func (r *repositories) run(_ context.Context, c program.Command) (program.Ended, error) {
	newest := r.now
	if slices.Contains(c.Args, "--setopt=appliance.baseurl=https://mirror.example/2026-11-23/appliance") {
		newest = r.then
	}
	var rows []string
	switch {
	case c.Name == "rpm":
		return program.Ended{Stdout: "a 0 1 1 noarch 9\nb 0 1 1 noarch 9\nc 0 1 1 noarch 9\n"}, nil
	case slices.Contains(c.Args, "repolist"):
		return program.Ended{Stdout: "repo id   repo name\nappliance appliance\n"}, nil
	case slices.Contains(c.Args, "--upgrades") && slices.Contains(c.Args, "--security"):
		rows = []string{"a.noarch", "c.noarch"}
	case slices.Contains(c.Args, "--upgrades"):
		for _, name := range slices.Sorted(maps.Keys(newest)) {
			rows = append(rows, name+".noarch\t0\t"+newest[name]+"\t1")
		}
	case slices.Contains(c.Args, "%{name}.%{arch}\t%{epoch}\t%{version}\t%{release}\t%{downloadsize}\t%{installsize}"),
		slices.Contains(c.Args, "%{name}.%{arch}\t%{epoch}\t%{version}\t%{release}\t%{downloadsize}\t%{installsize}\n"):
		for name, version := range newest {
			rows = append(rows, name+".noarch\t0\t"+version+"\t1\t9\t9")
		}
	case slices.Contains(c.Args, "--assumeno"):
		at := slices.Index(c.Args, "--assumeno")
		r.asked = append(r.asked, c.Args[at+1:])
		return program.Ended{Printed: "Nothing to do.\n"}, nil
	}
	return program.Ended{Stdout: strings.Join(append(rows, ""), "\n")}, nil
}

// TestReleaseDecides has a release say what dnf is asked for, in whatever way the host is configured.
func TestReleaseDecides(t *testing.T) {
	t.Parallel()
	const excepted, unnamed, other = ".noarch excepted by the release", ".noarch not named by the release", ".noarch dnf does not choose it now"
	for name, row := range map[string]struct {
		of    release.Packages
		asked []string
		held  []string
	}{
		"all":          {release.Packages{Select: release.All}, []string{"upgrade", "NOBEST"}, []string{"a" + other, "b" + other}},
		"only some":    {release.Packages{Select: release.All, Only: []string{"a*"}}, []string{"upgrade", "NOBEST", "a.noarch"}, []string{"a" + other, "b" + unnamed}},
		"all but some": {release.Packages{Select: release.All, Except: []string{"a*"}}, []string{"upgrade", "NOBEST", "--exclude=a*"}, []string{"a" + excepted, "b" + other}},
		"none":         {release.Packages{Select: release.All, Only: []string{"z"}}, nil, []string{"a" + unnamed, "b" + unnamed}},
		"some of security": {
			release.Packages{Select: release.Security, Only: []string{"a"}},
			[]string{"upgrade", "--security", "NOBEST", "a.noarch"},
			[]string{"a.noarch not a security update", "b" + unnamed},
		},
		"none of security": {release.Packages{Select: release.Security, Only: []string{"b"}}, nil, []string{"a" + unnamed, "b.noarch not a security update"}},
		"a list":           {release.Packages{Select: release.Listed, Only: []string{"a", "c=1-0"}}, []string{"install", "a-2-1.noarch", "c-1-0"}, []string{"a.noarch only of the release names another version"}},
	} {
		both(t, name, func(t *testing.T, s *Strategy) {
			r := &repositories{now: map[string]string{"a": "2", "b": "2"}}
			s.run = r.run
			plan, err := s.Plan(t.Context(), strategy.Job{Release: &release.Release{Packages: &row.of}, Progress: func(int, string) {}})
			var held []string
			for _, h := range plan.Held {
				held = append(held, h.Name+" "+h.Reason)
			}
			var asked []string
			for _, args := range r.asked {
				asked = append(asked, args...)
			}
			want := slices.Clone(row.asked)
			if at := slices.Index(want, "NOBEST"); at >= 0 {
				want[at] = s.nobest
			}
			if err != nil || !slices.Equal(asked, want) || !slices.Equal(held, row.held) {
				t.Errorf("dnf is asked for %q, want %q; held is %q, want %q; %v", asked, want, held, row.held, err)
			}
		})
	}
	both(t, "what dnf cannot do", func(t *testing.T, s *Strategy) {
		s.run = (&repositories{now: map[string]string{"a": "2"}}).run
		for name, row := range map[string]struct {
			of    release.Release
			class message.Class
			want  string
		}{
			"images":                {release.Release{Images: []release.Image{{URL: "https://mirror.example/a"}}}, message.Artifact, "is of images; this host carries out releases of packages"},
			"another distribution":  {release.Release{Packages: &release.Packages{Distribution: "43"}}, message.Artifact, "dnf upgrades within one; leave distribution out"},
			"an option of dnf":      {release.Release{Packages: &release.Packages{Select: release.Listed, Only: []string{"--x=1"}}}, message.Artifact, `only of the release: "--x=1" is not a package`},
			"what is not there":     {release.Release{Packages: &release.Packages{Select: release.Listed, Only: []string{"z"}}}, message.Install, "only of the release: z is not installed"},
			"a time without a past": {release.Release{Packages: &release.Packages{AsOf: time.Now()}}, message.Repository, string(remedy.DNFNoPast)},
			"more than is there":    {release.Release{Packages: &release.Packages{}, Installs: map[string]string{"a": "2-1"}}, message.Repository, "gets a 1-1 and not 2-1, which the release installs"},
		} {
			plan, err := s.Prepare(t.Context(), strategy.Job{Release: &row.of, Progress: func(int, string) {}})
			if strategy.ClassOf(err) != row.class || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: the plan is %v, %v", name, plan, err)
			}
		}
	})
}

// TestMissingInstalls: an upgrade by plan is not done while the host lacks what the release installs.
func TestMissingInstalls(t *testing.T) {
	t.Parallel()
	both(t, "", func(t *testing.T, s *Strategy) {
		s.run = (&repositories{}).run
		j := strategy.Job{Release: &release.Release{Installs: map[string]string{"a": "1-1", "b": "2-1"}}}
		missing, err := s.Missing(t.Context(), j)
		if err != nil || len(missing) != 1 || missing[0].String() != "b 1-1 → 2-1" {
			t.Errorf("missing are %v, %v", missing, err)
		}
	})
}

// TestAfter: by its name a package has the version of the architecture that it goes to.
func TestAfter(t *testing.T) {
	t.Parallel()
	now := database{"a.noarch": {"1-1"}, "b.x86_64": {"1-1", "2-1"}, "c.x86_64": {"1-1"}}
	got := now.after([]message.Change{{Name: "a.x86_64", To: "2-1"}, {Name: "a.noarch", From: "1-1"}, {Name: "b.x86_64", To: "3-1"}, {Name: "d.x86_64", To: "1-1"}})
	if want := map[string]string{"a": "2-1", "b": "3-1", "c": "1-1", "d": "1-1"}; !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// TestAsOf plans as of a time in the past, by a cache that has nothing of other times.
func TestAsOf(t *testing.T) {
	t.Parallel()
	both(t, "", func(t *testing.T, s *Strategy) {
		r := &repositories{now: map[string]string{"a": "3", "b": "3"}, then: map[string]string{"a": "2"}}
		s.run, s.Snapshot = r.run, "https://mirror.example/{date}/{repo}"
		job := strategy.Job{Progress: func(int, string) {}}
		job.Release = &release.Release{Packages: &release.Packages{AsOf: time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)}}
		if plan, err := s.Plan(t.Context(), job); !errors.Is(err, strategy.ErrNoPlan) {
			t.Errorf("before its metadata is there the plan is %v, %v", plan, err)
		}
		cache := s.host.Path(s.cache + "-osupgrade")
		for _, at := range []string{"20261122T060000Z", "20261123T060000Z"} {
			if err := os.MkdirAll(filepath.Join(cache, at), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		plan, err := s.Prepare(t.Context(), job)
		if err != nil || len(plan.Held) != 1 || plan.Held[0].Name != "a.noarch" || plan.Held[0].Offered != "2-1" {
			t.Errorf("as of then there is %v, %v", plan.Held, err)
		}
		left, err := os.ReadDir(cache)
		if err != nil || len(left) != 1 || left[0].Name() != "20261123T060000Z" {
			t.Errorf("of other times is left %v, %v", left, err)
		}
		if plan, err := s.Plan(t.Context(), job); err != nil || len(plan.Held) != 1 {
			t.Errorf("once its metadata is there, there is %v, %v", plan.Held, err)
		}
		job.Release = nil
		if plan, err := s.Plan(t.Context(), job); err != nil || len(plan.Held) != 2 || plan.Held[0].Offered != "3-1" {
			t.Errorf("now there is %v, %v", plan.Held, err)
		}
	})
}
