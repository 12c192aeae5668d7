package strategy

import (
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

func TestPackages(t *testing.T) {
	t.Parallel()
	if got, err := (Job{}).Packages(); err != nil || got.Select != release.All {
		t.Errorf("without a release a run installs %+v, %v", got, err)
	}
	of := Job{Release: &release.Release{Packages: &release.Packages{Select: release.Security}}}
	if got, err := of.Packages(); err != nil || got.Select != release.Security {
		t.Errorf("by its release a run installs %+v, %v", got, err)
	}
	of.Release = &release.Release{Images: []release.Image{{URL: "https://mirror.example/a"}}}
	if got, err := of.Packages(); ClassOf(err) != message.Artifact {
		t.Errorf("of a release with images it installs %+v, %v", got, err)
	}
}

func TestLeftOut(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		of   release.Packages
		want map[string]string
	}{
		"all":               {release.Packages{Select: release.All}, map[string]string{"a": "", "b": ""}},
		"only some":         {release.Packages{Select: release.All, Only: []string{"a*"}}, map[string]string{"ab": "", "b": "not named by the release"}},
		"all but some":      {release.Packages{Select: release.Security, Except: []string{"a*"}}, map[string]string{"ab": "excepted by the release", "b": ""}},
		"some of some":      {release.Packages{Select: release.All, Only: []string{"a*"}, Except: []string{"ab"}}, map[string]string{"ab": "excepted by the release", "aa": ""}},
		"a list is no rule": {release.Packages{Select: release.Listed, Only: []string{"a=1"}}, map[string]string{"a": "", "lib": ""}},
	} {
		for pkg, want := range row.want {
			if got := LeftOut(row.of, pkg); got != want {
				t.Errorf("%s: %s is %q, want %q", name, pkg, got, want)
			}
		}
	}
}

// TestInstalls: done needs what the release says that the host then reports, and a plan that does
// not lead there is told before anything changes.
func TestInstalls(t *testing.T) {
	t.Parallel()
	job := Job{Release: &release.Release{Installs: map[string]string{"appliance": "2", "kernel": "6.2"}}}
	planned := []message.Change{{Name: "appliance", From: "1", To: "2"}}
	for name, row := range map[string]struct {
		job     Job
		missing []message.Change
		has     map[string]string
		want    []string
	}{
		"all of it":        {job, nil, map[string]string{"appliance": "2", "kernel": "6.2", "other": "1"}, nil},
		"none of it":       {job, nil, map[string]string{"kernel": "6.1"}, []string{"appliance 2 (new)", "kernel 6.1 → 6.2"}},
		"told by the plan": {job, planned, map[string]string{"appliance": "1", "kernel": "6.2"}, []string{"appliance 1 → 2"}},
		"no release":       {Job{}, planned, nil, []string{"appliance 1 → 2"}},
		"before a reboot":  {Job{Release: job.Release, Staged: true}, nil, nil, nil},
		"on the way back":  {Job{Release: job.Release, Reversed: true}, nil, nil, nil},
	} {
		if got := message.ChangeTexts(row.job.WithInstalls(row.missing, row.has)); !slices.Equal(got, row.want) {
			t.Errorf("%s: missing are %q, want %q", name, got, row.want)
		}
	}
	system := map[string]string{"kernel": "6.1"}
	if err := job.Reaches(map[string]string{"appliance": "2"}, system); err != nil {
		t.Error(err)
	}
	for _, has := range []map[string]string{nil, {"appliance": "1"}} {
		if err := job.Reaches(has, system); ClassOf(err) != message.Repository || !strings.Contains(err.Error(), "and not 2, which the release installs") {
			t.Errorf("a host that would have %v: %v", has, err)
		}
	}
	if err := (Job{}).Reaches(nil, nil); err != nil {
		t.Error(err)
	}
}
