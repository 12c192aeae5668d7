package sysupdate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/watchtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// TestUpgrade goes to a version that the source has, with a systemd-sysupdate that downloads before it
// installs and with an older one.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		h := newHost(t, func(h *host) { h.old = old })
		if err := h.s.Detect(t.Context()); err != nil {
			t.Error(err)
		}
		if plan, err := h.s.Plan(t.Context(), h.job(message.ChangeSet{})); err == nil || !strings.Contains(err.Error(), "cannot tell what it would change") {
			t.Errorf("plan: %+v, %v", plan, err)
		}
		for range 2 { // As after a crash.
			job := h.prepare()
			if want := []message.Change{{Name: "kiosk", From: "1", To: "2"}}; !slices.Equal(job.Plan.Changes, want) {
				t.Fatalf("prepare: %+v", job.Plan)
			}
			if _, whole := h.of("2"); whole == old {
				t.Errorf("prepare leaves %q", h.entries())
			}
		}
		job := h.prepare()
		if outcome, err := h.s.Resume(t.Context(), job); err != nil || outcome != strategy.NotDone {
			t.Errorf("resume before: %v, %v", outcome, err)
		}
		h.upgrade(job)
		if outcome, err := h.s.Resume(t.Context(), job); err != nil || outcome != strategy.RebootRequired {
			t.Errorf("resume: %v, %v", outcome, err)
		}
		if again := h.prepare(); !slices.Equal(again.Plan.Changes, job.Plan.Changes) {
			t.Errorf("prepare before the reboot: %+v", again.Plan)
		}
		if boot := h.booted(); boot != (strategy.Boot{Running: "2"}) || !slices.Contains(h.entries(), "kiosk_2.efi") {
			t.Errorf("boot %+v, entries %q", boot, h.entries())
		}
		if err := h.s.Verify(t.Context(), job); err != nil {
			t.Error(err)
		}
		if versions, err := h.s.Versions(t.Context()); err != nil || versions["kiosk"] != "2" || versions["os-image"] != "kiosk 2" {
			t.Errorf("versions %v, %v", versions, err)
		}
		if job = h.prepare(); !job.Plan.Empty() {
			t.Errorf("another prepare plans %+v", job.Plan)
		}
	}
}

// TestWayBack checks a version that does not start: the machine goes back by itself, the strategy
// tells both versions once, and the version starts no more.
func TestWayBack(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(h *host) { h.panics = []string{"2"} })
	job := h.prepare()
	h.upgrade(job)
	h.start()
	if outcome, err := h.s.Resume(t.Context(), job); strategy.ClassOf(err) != message.Boot || !strings.Contains(fmt.Sprint(err), "kiosk 2 did not start: the machine went back by itself to 1") {
		t.Errorf("resume: %v, %v", outcome, err)
	}
	if boot := h.booted(); boot != (strategy.Boot{Running: "1", Failed: "2"}) {
		t.Errorf("boot %+v", boot)
	}
	h.panics = nil
	for range 2 {
		if boot := h.booted(); boot != (strategy.Boot{Running: "1"}) {
			t.Fatalf("the way back is told again, or the version starts: %+v", boot)
		}
	}
	accepted := released(h.job(message.ChangeSet{}), "2", release.Image{URL: "https://updates.example.org/kiosk"})
	rejected := accepted
	rejected.Rejected = message.Rejected{"kiosk": {"2"}}
	if plan, err := h.s.Prepare(t.Context(), rejected); err != nil || len(plan.Held) != 1 || len(plan.Changes) != 0 {
		t.Errorf("a version that was rolled back is planned: %+v, %v", plan, err)
	}
	// Somebody has accepted it.
	plan, err := h.s.Prepare(t.Context(), accepted)
	h.do(err)
	accepted.Plan = plan
	h.upgrade(accepted)
	if boot := h.booted(); boot != (strategy.Boot{Running: "2"}) {
		t.Errorf("boot %+v", boot)
	}
}

// TestRollback checks the way back of a version that starts and is not well, and of one that has not
// started yet.
func TestRollback(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	job := h.prepare()
	h.upgrade(job)
	if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done {
		t.Fatalf("rollback before the reboot: %v, %v", outcome, err)
	}
	if boot := h.booted(); boot != (strategy.Boot{Running: "1"}) {
		t.Errorf("what was rolled back starts, or is told as given up: %+v", boot)
	}
	for _, blessed := range []bool{false, true} {
		h.upgrade(job)
		if h.start(); blessed {
			h.do(h.s.Confirm(t.Context(), strategy.Boot{Running: "2"}))
		}
		for range 2 {
			if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.RebootRequired {
				t.Fatalf("rollback: %v, %v, %q", outcome, err, h.entries())
			}
		}
		if boot := h.booted(); boot != (strategy.Boot{Running: "1"}) {
			t.Errorf("a rollback is told as a way back of the machine: %+v", boot)
		}
		if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done {
			t.Errorf("rollback after the reboot: %v, %v", outcome, err)
		}
	}
}

// TestRollbackOfARollback goes back to a version whose starts were taken from it.
func TestRollbackOfARollback(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	forward := h.prepare()
	h.upgrade(forward)
	h.booted()
	h.write("kiosk_1+0-0.efi")
	h.do(os.Remove(filepath.Join(h.root, entriesFolder, "kiosk_1.efi")))
	if outcome, err := h.s.Rollback(t.Context(), forward); err != nil || outcome != strategy.RebootRequired {
		t.Fatalf("rollback: %v, %v", outcome, err)
	}
	if boot := h.booted(); boot != (strategy.Boot{Running: "1"}) {
		t.Errorf("boot %+v, entries %q", boot, h.entries())
	}
}

// TestNothingToGoBackTo checks what a rollback says when the version from before is gone.
func TestNothingToGoBackTo(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	job := h.prepare()
	h.upgrade(job)
	h.booted()
	h.do(os.Remove(filepath.Join(h.root, entriesFolder, "kiosk_1.efi")))
	if _, err := h.s.Rollback(t.Context(), job); strategy.ClassOf(err) != message.Install || !strings.Contains(err.Error(), "kiosk 1 is not installed any more") {
		t.Errorf("rollback: %v", err)
	}
	if boot := h.booted(); boot != (strategy.Boot{Running: "2"}) {
		t.Errorf("boot %+v", boot)
	}
}

// TestRelease goes to the version of a release, whatever the source has besides.
func TestRelease(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(h *host) { h.source = []string{"1", "2", "3"} })
	job := released(h.job(message.ChangeSet{}), "2", release.Image{URL: "https://updates.example.org/kiosk", Compatible: "kiosk"})
	if plan, err := h.s.Plan(t.Context(), job); err != nil || len(plan.Changes) != 1 || plan.Changes[0].To != "2" {
		t.Errorf("plan: %+v, %v", plan, err)
	}
	plan, err := h.s.Prepare(t.Context(), job)
	if err != nil || len(plan.Changes) != 1 || plan.Changes[0].To != "2" {
		t.Fatalf("prepare: %+v, %v", plan, err)
	}
	job.Plan = plan
	h.upgrade(job)
	if boot := h.booted(); boot != (strategy.Boot{Running: "2"}) {
		t.Errorf("boot %+v", boot)
	}
}

func released(job strategy.Job, version string, image release.Image) strategy.Job {
	job.Release, job.ReleaseName = &release.Release{Version: version, Images: []release.Image{image}}, "r2"
	return job
}

// TestRefused checks what a host does not install: it says why, and installs nothing.
func TestRefused(t *testing.T) {
	t.Parallel()
	image := release.Image{URL: "https://updates.example.org/kiosk"}
	for text, c := range map[string]struct {
		version string
		image   release.Image
		change  func(h *host)
		class   message.Class
	}{
		"the source of systemd-sysupdate has no version 9; it has 2, 1":        {version: "9", image: image, class: message.Artifact},
		"release r2: it has no version":                                        {image: image, class: message.Artifact},
		`"--help" is no version`:                                               {version: "--help", image: image, class: message.Artifact},
		"leave sha256 and size out":                                            {version: "2", image: release.Image{URL: image.URL, Size: 7}, class: message.Artifact},
		`compatible with "kiosk"; it has one for any platform compatible with`: {version: "2", image: release.Image{URL: image.URL, Compatible: "gate"}, class: message.Artifact},
		"version 0 is older than 1, which runs": {
			version: "0", image: image, class: message.Artifact, change: func(h *host) { h.source = append(h.source, "0") },
		},
		"set ProtectVersion=%A": {version: "2", image: image, change: func(h *host) { h.unprotected = true }},
		"SHA256 hash mismatch": {
			version: "2", image: image, class: message.Artifact, change: func(h *host) { h.fails = "SHA256 hash mismatch" },
		},
		"No space left on device": {
			version: "2", image: image, class: message.Space, change: func(h *host) { h.fails = "Failed to write: No space left on device" },
		},
	} {
		h := newHost(t, nil)
		if c.change != nil {
			c.change(h)
		}
		plan, err := h.s.Prepare(t.Context(), released(h.job(message.ChangeSet{}), c.version, c.image))
		if strategy.ClassOf(err) != c.class || err == nil || !strings.Contains(err.Error(), text) || len(h.entries()) != 1 {
			t.Errorf("%+v, %v of class %q; want %q", plan, err, strategy.ClassOf(err), text)
		}
	}
}

// TestInstallationFails checks that a version that could not be installed is not there.
func TestInstallationFails(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	job := h.prepare()
	h.fails = "Failed to write: Input/output error"
	if _, err := h.s.Upgrade(t.Context(), job); strategy.ClassOf(err) != message.Install || !strings.Contains(err.Error(), "Input/output error") {
		t.Errorf("upgrade: %v", err)
	}
	if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done {
		t.Errorf("rollback: %v, %v", outcome, err)
	}
	if boot := h.booted(); boot != (strategy.Boot{Running: "1"}) {
		t.Errorf("boot %+v", boot)
	}
}

// TestWithoutBless checks that a host without systemd's boot counting has nothing to mark.
func TestWithoutBless(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	h.do(os.Remove(filepath.Join(h.root, "usr/lib/systemd/systemd-bless-boot")))
	if boot := h.booted(); boot != (strategy.Boot{Running: "1"}) || slices.ContainsFunc(h.calls, func(call string) bool { return strings.HasPrefix(call, "systemd-bless-boot") }) {
		t.Errorf("boot %+v, calls %q", boot, h.calls)
	}
}

// TestVersionPaths checks that a version that was installed is told.
func TestVersionPaths(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	watchtest.Tells(t, h.s.VersionPaths(), true, "a version", func() error {
		return os.WriteFile(filepath.Join(h.root, entriesFolder, "kiosk_2.efi"), nil, 0o600)
	})
}

// TestRollbackOf rolls back a run, and then forward again, as a run of its own: the version that was rolled
// back is not bad for ever.
func TestRollbackOf(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	job := h.prepare()
	h.upgrade(job)
	if boot := h.booted(); boot != (strategy.Boot{Running: "2"}) {
		t.Fatalf("boot %+v", boot)
	}
	for _, goes := range []string{"1", "2", "1"} {
		plan, err := h.s.PrepareRollback(t.Context(), job)
		if err != nil || len(plan.Changes) != 1 || plan.Changes[0].To != goes || plan.Reboot == "" {
			t.Fatalf("prepare of the way to %s: %+v, %v", goes, plan, err)
		}
		job.RollbackOf = 1
		if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.RebootRequired {
			t.Fatalf("rollback: %v, %v", outcome, err)
		}
		back := h.job(plan)
		back.Reversed, back.Staged = true, true
		if missing, err := h.s.Missing(t.Context(), back); err != nil || len(missing) > 0 {
			t.Errorf("before the reboot %v is missing, %v", missing, err)
		}
		if boot := h.booted(); boot != (strategy.Boot{Running: goes}) {
			t.Errorf("it has started %+v, entries %q", boot, h.entries())
		}
		if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done {
			t.Errorf("rollback after the reboot: %v, %v", outcome, err)
		}
		job = h.job(plan)
	}
	entry, _ := h.of("2")
	h.do(os.Remove(filepath.Join(h.root, entriesFolder, entry)))
	if plan, err := h.s.PrepareRollback(t.Context(), job); strategy.ClassOf(err) != message.Artifact || !strings.Contains(fmt.Sprint(err), "kiosk 2 is not installed any more") {
		t.Errorf("without the other version: %+v, %v", plan, err)
	}
}
