package worker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// ofImage is a release that brings a host to a kernel that no upgrade without a release would
// choose.
func ofImage() release.Release {
	return release.Release{
		Version: "6.1.9", Scheme: release.Semver, Installs: map[string]string{"kernel": "6.1.9"}, Requires: map[string]string{"base-os": ">= 1.0"},
		Images: []release.Image{{URL: "https://images.example/a.img"}},
	}
}

// pin has the prepare of the rig name a release, and the site have its text.
func (r *rig) pin(installs release.Release) {
	pinned := installs.Pin("spring")
	r.release, r.hostLog.release = pinned.Ref().String(), pinned.Text
}

// TestPinnedRelease checks what a host installs of a run with a release, and that it goes on with it
// though the site gives another text by then.
func TestPinnedRelease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.pin(ofImage())
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		if j := r.journal(); j.Release == nil || string(j.Release.Text) != string(r.hostLog.release) {
			t.Fatalf("the journal has the release %+v", j.Release)
		}
		r.hostLog.release = []byte(`{"another":"text"}`)
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
		r.command(12, message.Reboot)
		expect(r, message.Reboot, message.Done)
		versions, err := r.host.Versions(t.Context())
		if err != nil || versions["kernel"] != "6.1.9" || versions["base-os"] != "1.0" {
			t.Errorf("the host has %v, %v", versions, err)
		}
	})
}

// TestReleaseCrash kills the worker at each visit of each label of a run with a release: what it
// installs is on disk before it prepares, and is installed once.
func TestReleaseCrash(t *testing.T) {
	t.Parallel()
	var calm *rig
	play := func(r *rig) {
		r.pin(ofImage())
		wholeRun(r)
		if versions, err := r.host.Versions(t.Context()); err != nil || versions["kernel"] != "6.1.9" {
			t.Errorf("the host has %v, %v", versions, err)
		}
	}
	inBubble(t, func(r *rig) { calm = r; play(r) })
	if calm.visits["before get release"] != 1 || calm.visits["before prepare"] != 1 {
		t.Fatalf("a calm run visits %v", calm.visits)
	}
	for _, label := range []string{"before get release", "after get release", "before journal", "after journal", "before prepare", "after prepare", "before plan"} {
		for visit := range calm.visits[label] {
			t.Run(label, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(r *rig) {
					r.dieAt, r.visit = label, visit+1
					play(r)
				})
			})
		}
	}
}

// TestReleaseIsWrittenFirst checks that the text is in the journal on disk when the host is prepared.
func TestReleaseIsWrittenFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.pin(ofImage())
		r.bear()
		r.dieAt, r.visit = "before prepare", 1
		r.prepare()
		r.life(func() bool { return false })
		if j := r.journal(); j.Phase != decide.Preparing || j.Release == nil || len(j.Release.Text) == 0 {
			t.Errorf("before prepare the journal is %+v", j)
		}
	})
}

// dataOnly is a host that carries out no release but those of data.
type dataOnly struct{ strategy.Strategy }

func (dataOnly) Releases() []release.Kind { return []release.Kind{release.OfData} }

// noReleases is a host that carries out no release.
type noReleases struct{ strategy.Strategy }

// TestRefusedRelease checks which releases a host does not carry out, and that nothing is prepared.
func TestRefusedRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *rig)
		want   string
	}{
		"another text": {func(r *rig) { r.hostLog.release = []byte(`{"component":"os"}`) }, "release spring: its text has digest"},
		"no text":      {func(r *rig) { r.hostLog.refused["release"] = true }, "cannot get release spring: release: refused by the site"},
		"another kind": {func(r *rig) { r.change = func(o *Options) { o.Strategy = dataOnly{o.Strategy} } }, "release spring is of images; this host carries out releases of data"},
		"an older strategy": {
			func(r *rig) { r.change = func(o *Options) { o.Strategy = noReleases{o.Strategy} } },
			"release spring is of images; this host carries out no releases",
		},
		"a version that does not fit": {func(r *rig) {
			installs := ofImage()
			installs.Requires["base-os"] = ">= 2.0"
			r.pin(installs)
		}, "release spring is not for this host: its base-os is 1.0; the release requires >= 2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.pin(ofImage())
				c.change(r)
				r.bear()
				r.prepare()
				if got := r.until(message.Prepare); !strings.Contains(got, c.want) {
					t.Errorf("prepare is answered %q, not %q", got, c.want)
				}
				if class := r.hostLog.replies[0].Result.Class; class != message.Artifact {
					t.Errorf("the class is %q", class)
				}
				if r.effects("prepare") != 0 {
					t.Error("the host was prepared")
				}
			})
		})
	}
}

// leavesOut is a host whose upgrade leaves out what the release installs.
type leavesOut struct{ strategy.Strategy }

func (leavesOut) Releases() []release.Kind { return []release.Kind{release.OfImages} }

func (s leavesOut) Prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	job.Release = nil
	return s.Strategy.Prepare(ctx, job)
}

// TestInstallsIsProved checks that done means that the host reports what the release installs,
// whatever the plan was.
func TestInstallsIsProved(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.pin(ofImage())
		r.change = func(o *Options) { o.Strategy = leavesOut{o.Strategy} }
		r.bear()
		if err := r.host.SetFaults(map[string]string{"upgrade": "no-reboot"}); err != nil {
			t.Fatal(err)
		}
		r.prepare()
		expect(r, message.Prepare, message.Done)
		r.command(11, message.Upgrade)
		if got, want := r.until(message.Upgrade), "the host lacks what release spring installs: kernel 6.1.9 (it is 6.1.1)"; !strings.Contains(got, want) {
			t.Errorf("upgrade is answered %q, not %q", got, want)
		}
	})
}

// ofPackages is a strategy of packages, which tells itself whether the host has what the release installs.
type ofPackages struct{ leavesOut }

func (ofPackages) Releases() []release.Kind { return []release.Kind{release.OfPackages} }

// TestInstallsPackageNotReported checks that a release of packages may install one whose version the host
// does not report.
func TestInstallsPackageNotReported(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.pin(release.Release{Installs: map[string]string{"libnotreported": "2"}, Packages: &release.Packages{Select: release.All}})
		r.change = func(o *Options) { o.Strategy = ofPackages{leavesOut{o.Strategy}} }
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
		r.command(12, message.Reboot)
		expect(r, message.Reboot, message.Done)
	})
}

// TestReleaseAwaitsSite checks that a host that cannot reach its site waits with the release.
func TestReleaseAwaitsSite(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.pin(ofImage())
		r.bear()
		r.hostLog.slow["release"] = true
		r.prepare()
		if err := r.run(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if j := r.journal(); j.Phase != decide.Preparing || len(j.Release.Text) != 0 || r.effects("prepare") != 0 {
			t.Errorf("the journal is %+v", j)
		}
	})
}
