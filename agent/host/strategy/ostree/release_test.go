package ostree

import (
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	releases "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

func releaseOf(version string, image releases.Image) strategy.Job {
	job := jobOf(message.ChangeSet{})
	job.Release, job.ReleaseName = &releases.Release{Version: version, Images: []releases.Image{image}}, "r2"
	return job
}

// imagesOf are the images of version 2 for each tool.
var imagesOf = map[Tool]releases.Image{
	RPMOSTree: {URL: two},
	Bootc:     {URL: "quay.io:5000/example/system:stable", SHA256: two},
}

// TestAdaptersRelease goes to the version of a release, also when the branch or the tag has gone on
// before the host is prepared or before it is upgraded.
func TestAdaptersRelease(t *testing.T) {
	t.Parallel()
	for name, c := range adapters {
		for _, newest := range []string{two, three} {
			t.Run(name+" "+newest[:1], func(t *testing.T) {
				t.Parallel()
				h, s := adapter(t, c.tool, c.downloads)
				h.head = newest
				job := releaseOf("2", imagesOf[c.tool])
				plan, err := s.Prepare(t.Context(), job)
				if want := []message.Change{{Name: "default", From: "1 (111111111111)", To: "2 (222222222222)"}}; err != nil || !slices.Equal(plan.Changes, want) || len(h.all) != 1 {
					t.Fatalf("prepare: %+v, %v, %+v", plan, err, h.all)
				}
				if again, err := s.Plan(t.Context(), job); err != nil || !slices.Equal(again.Changes, plan.Changes) {
					t.Errorf("plan: %+v, %v", again, err)
				}
				job.Plan, h.head = plan, three
				upgrade(t, s, job)
				h.start(false)
				if err := s.Verify(t.Context(), job); err != nil {
					t.Error(err)
				}
				calls := len(h.calls)
				if plan, err := s.Prepare(t.Context(), job); err != nil || !plan.Empty() {
					t.Errorf("the release that runs is planned as %+v, %v", plan, err)
				}
				if asked := h.calls[calls:]; slices.ContainsFunc(asked, func(call string) bool { return !strings.Contains(call, "status") }) {
					t.Errorf("the remote is asked for the release that runs: %q", asked)
				}
			})
		}
	}
}

// TestReleaseIsRefused checks what a host does not deploy: it says why, and stages nothing.
func TestReleaseIsRefused(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		tool    Tool
		version string
		image   releases.Image
	}{
		"release r2: its image quay.io/x:1 has no digest": {Bootc, "2", releases.Image{URL: "quay.io/x:1"}},
		"; leave one out": {Bootc, "2", releases.Image{URL: "quay.io/x@sha256:" + two, SHA256: three}},
		"add the version that the image has in its label":           {Bootc, "", releases.Image{URL: "quay.io/x@sha256:" + three}},
		`has the version "2", and the release has "2.1"`:            {RPMOSTree, "2.1", releases.Image{URL: two}},
		"it is of fedora:next, and this host follows fedora:stable": {RPMOSTree, "2", releases.Image{URL: "fedora:next"}},
		`it has one for any platform compatible with "fedora"`:      {RPMOSTree, "2", releases.Image{URL: two, Compatible: "fedora"}},
	} {
		h, s := adapter(t, c.tool, false)
		h.head = two
		plan, err := s.Prepare(t.Context(), releaseOf(c.version, c.image))
		if strategy.ClassOf(err) != message.Artifact || !strings.Contains(err.Error(), text) || len(h.all) != 1 {
			t.Errorf("%+v, %v of class %q; want %q", plan, err, strategy.ClassOf(err), text)
		}
	}
}

// TestTarget checks what a release means on a host that follows origin:stable.
func TestTarget(t *testing.T) {
	t.Parallel()
	now := deployments{{name: "debian", id: one, origin: "origin:stable", booted: true}}
	pinned := func(url, sum string) image.Want {
		want := image.Want{Release: "r2", URL: url}
		want.Content.SHA256 = sum
		return want
	}
	for name, c := range map[string]struct {
		want  image.Want
		ref   string
		pulls string
	}{
		"no release":                    {image.Want{}, "origin:stable", "stable"},
		"a branch from before":          {image.Want{URL: "origin:next"}, "origin:next", "next"},
		"a commit":                      {pinned(two, ""), "origin:stable", "stable@" + two},
		"a branch":                      {pinned("origin:beta", ""), "origin:beta", "beta"},
		"a commit of a branch":          {pinned("origin:beta", two), "origin:beta", "beta@" + two},
		"a commit, and its sum is that": {pinned(two, two), "origin:stable", "stable@" + two},
	} {
		if got, err := targetOf(now, c.want); err != nil || got.ref != c.ref || got.remote != "origin" || got.pulls() != c.pulls {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for text, want := range map[string]image.Want{
		"leave one out":   pinned(two, three),
		"and no commit":   pinned("stable", ""),
		"is no branch of": pinned("stable", two),
	} {
		if got, err := targetOf(now, want); strategy.ClassOf(err) != message.Artifact || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v, %v; want %q", got, err, text)
		}
	}
	for _, want := range []image.Want{{}, pinned(two, "")} {
		if _, err := targetOf(deployments{{name: "debian", id: one, booted: true}}, want); err == nil || !strings.Contains(err.Error(), "follows no branch") || !strings.Contains(err.Error(), "use REMOTE:BRANCH, such as origin:stable, as the url of an image in a release") {
			t.Errorf("%+v of no remote: %v", want, err)
		}
	}
}
