package rauc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// host is a host with the fake service and a bundle on it.
type host struct {
	*fake
	t    *testing.T
	bus  bus
	s    *Strategy
	mu   sync.Mutex
	told []string
}

func newHost(t *testing.T, modern bool, change func(o *Options)) *host {
	t.Helper()
	h := &host{t: t, bus: startBus(t)}
	h.fake = startFake(t, h.bus, modern)
	path := filepath.Join(t.TempDir(), "2.raucb")
	if err := os.WriteFile(path, []byte("a bundle"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.set(func() { h.bundles["2.raucb"] = fakeBundle{compatible: "appliance", version: "2"} })
	o := Options{Bundle: path, StateDir: t.TempDir(), bus: h.bus.address, root: t.TempDir()}
	if change != nil {
		change(&o)
	}
	h.open(o)
	return h
}

func (h *host) open(o Options) {
	h.t.Helper()
	var err error
	if h.s, err = New(o); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) job(plan message.ChangeSet) strategy.Job {
	return strategy.Job{Tenant: "acme", Host: "h01", Run: 41, Plan: plan, Progress: func(_ int, text string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.told = append(h.told, text)
	}}
}

func (h *host) prepare() strategy.Job {
	h.t.Helper()
	plan, err := h.s.Prepare(h.t.Context(), h.job(message.ChangeSet{}))
	if err != nil {
		h.t.Fatal(err)
	}
	return h.job(plan)
}

func (h *host) complete(job strategy.Job) bool {
	h.t.Helper()
	missing, err := h.s.Missing(h.t.Context(), job)
	if err != nil {
		h.t.Fatal(err)
	}
	return len(missing) == 0
}

func (h *host) upgrade(job strategy.Job) {
	h.t.Helper()
	if outcome, err := h.s.Upgrade(h.t.Context(), job); err != nil || outcome != strategy.RebootRequired {
		h.t.Fatalf("upgrade: %v, %v", outcome, err)
	}
	job.Staged = true
	if !h.complete(job) {
		h.t.Fatal("the upgrade is missing though it starts next")
	}
	if job.Staged = false; h.complete(job) {
		h.t.Fatal("the upgrade counts as complete though it does not run")
	}
}

func (h *host) booted() strategy.Boot {
	h.t.Helper()
	boot, err := h.s.Booted(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.s.Confirm(h.t.Context(), boot); err != nil {
		h.t.Fatal(err)
	}
	return boot
}

// TestUpgrade checks an upgrade from the bundle to the slot that is marked good, with
// the interface of an old RAUC and that of a new one.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		h := newHost(t, modern, nil)
		ctx := t.Context()
		if err := h.s.Detect(ctx); err != nil {
			t.Error(err)
		}
		if plan, err := h.s.Plan(ctx, h.job(message.ChangeSet{})); err != nil || len(plan.Changes) != 1 {
			t.Errorf("plan: %+v, %v", plan, err)
		}
		job := h.prepare()
		from := unknown
		if modern { // An older RAUC does not know what the factory wrote.
			from = "1"
		}
		if want := []message.Change{{Name: "rootfs", From: from, To: "2"}}; !slices.Equal(job.Plan.Changes, want) || h.installed() != 0 {
			t.Fatalf("prepare: %+v, %d installations", job.Plan, h.installed())
		}
		h.upgrade(job)
		if !slices.Contains(h.told, "Copying image to rootfs.1") {
			t.Errorf("the progress of RAUC is not told: %q", h.told)
		}
		if want := "41-upgrade-acme-h01"; modern && h.named() != want {
			t.Errorf("the transaction is %q, not %q", h.named(), want)
		}
		if outcome, err := h.s.Upgrade(ctx, job); err != nil || outcome != strategy.RebootRequired || h.installed() != 1 {
			t.Errorf("upgrade again: %v, %v, %d installations", outcome, err, h.installed())
		}
		h.reboot()
		if err := h.s.Verify(ctx, job); err != nil || !h.complete(job) {
			t.Errorf("verify after the reboot: %v", err)
		}
		if boot := h.booted(); boot != (strategy.Boot{Running: "2"}) {
			t.Errorf("boot %+v", boot)
		}
		h.reboot()
		versions, err := h.s.Versions(ctx)
		if err != nil || versions["rootfs"] != "2" || versions["rootfs.1"] != "2" {
			t.Errorf("versions %v, %v", versions, err)
		}
		if job = h.prepare(); !job.Plan.Empty() {
			t.Errorf("another prepare plans %+v", job.Plan)
		}
		if outcome, err := h.s.Upgrade(ctx, job); err != nil || outcome != strategy.Done || h.installed() != 1 {
			t.Errorf("an upgrade by an empty plan: %v, %v", outcome, err)
		}
	}
}

// TestWayBack checks a release that does not start: the machine goes back, the
// strategy tells both versions, and the release does not start again.
func TestWayBack(t *testing.T) {
	t.Parallel()
	h := newHost(t, true, nil)
	job := h.prepare()
	h.upgrade(job)
	h.set(func() { h.m.panics = []string{"2"} })
	h.reboot()
	if outcome, err := h.s.Resume(t.Context(), job); strategy.ClassOf(err) != message.Boot || !strings.Contains(fmt.Sprint(err), "rootfs 2 did not start: the machine went back by itself") {
		t.Errorf("resume: %v, %v", outcome, err)
	}
	if err := h.s.Verify(t.Context(), job); strategy.ClassOf(err) != message.Boot {
		t.Errorf("verify: %v", err)
	}
	if boot := h.booted(); boot != (strategy.Boot{Running: "1", Failed: "2"}) {
		t.Errorf("boot %+v", boot)
	}
	if boot := h.booted(); boot != (strategy.Boot{Running: "1"}) {
		t.Errorf("the way back is told again: %+v", boot)
	}
	h.set(func() { h.m.panics = nil })
	for range 3 {
		if h.reboot(); h.runs() != 0 {
			t.Fatal("a start takes the release that failed")
		}
		h.booted()
	}
	plan, err := h.s.Prepare(t.Context(), strategy.Job{Rejected: message.Rejected{"rootfs": {"2"}}, Progress: func(int, string) {}})
	if err != nil || len(plan.Changes) != 0 || len(plan.Held) != 1 {
		t.Errorf("a release that was rolled back is planned: %+v, %v", plan, err)
	}
}

// TestRollback checks the way back of a release that starts and is not well.
func TestRollback(t *testing.T) {
	t.Parallel()
	h := newHost(t, true, nil)
	job := h.prepare()
	h.upgrade(job)
	h.reboot()
	for range 2 {
		if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.RebootRequired {
			t.Fatalf("rollback: %v, %v", outcome, err)
		}
	}
	h.reboot()
	if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done {
		t.Errorf("rollback after the reboot: %v, %v", outcome, err)
	}
	if boot := h.booted(); boot != (strategy.Boot{Running: "1"}) {
		t.Errorf("a rollback is told as a way back of the machine: %+v", boot)
	}
}

// TestChoicesInOneSecond checks a host that is faster than the times that RAUC notes: a
// slot that fails after a rollback is told, though both were chosen in the same moment.
func TestChoicesInOneSecond(t *testing.T) {
	t.Parallel()
	h := newHost(t, true, nil)
	job := h.prepare()
	h.upgrade(job)
	h.reboot()
	if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.RebootRequired {
		t.Fatalf("rollback: %v, %v", outcome, err)
	}
	h.reboot()
	if boot := h.booted(); boot != (strategy.Boot{Running: "1"}) {
		t.Errorf("boot %+v after a rollback", boot)
	}
	h.upgrade(job)
	h.set(func() { h.m.panics = []string{"2"} })
	h.reboot()
	if boot := h.booted(); boot != (strategy.Boot{Running: "1", Failed: "2"}) {
		t.Errorf("boot %+v after a release that does not start", boot)
	}
}

// TestClockSetBack checks a host whose clock is before the last choice of a slot: it is
// told before anything is written, and a rollback that is needed is made all the same.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	h := newHost(t, true, nil)
	job := h.prepare()
	h.set(func() { h.m.slots[0].activated = time.Now().Add(time.Hour) })
	if outcome, err := h.s.Upgrade(t.Context(), job); strategy.ClassOf(err) != message.Transient || !strings.Contains(fmt.Sprint(err), "before RAUC last chose a slot") || h.installed() != 0 {
		t.Errorf("upgrade: %v, %v of class %q, %d installations", outcome, err, strategy.ClassOf(err), h.installed())
	}
	// Somebody else has installed it.
	h.set(func() { h.m.install("2") })
	if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done {
		t.Errorf("rollback: %v, %v", outcome, err)
	}
	if h.reboot(); h.runs() != 0 {
		t.Error("what was rolled back starts")
	}
}

// TestBrokenOff checks that an installation that broke off begins again, whether the
// power was cut, the service ended or the worker.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(h *host, job strategy.Job){
		"power cut": func(h *host, job strategy.Job) {
			ctx, cancel := context.WithCancel(h.t.Context())
			defer cancel()
			h.set(func() { h.during = func() bool { cancel(); return false } })
			if _, err := h.s.Upgrade(ctx, job); !errors.Is(err, context.Canceled) {
				h.t.Errorf("upgrade: %v", err)
			}
			h.set(func() { h.during = func() bool { return true } })
			h.reboot()
		},
		"service ended": func(h *host, job strategy.Job) {
			h.set(func() { h.during = func() bool { h.end(); return false } })
			if _, err := h.s.Upgrade(h.t.Context(), job); strategy.ClassOf(err) != message.Transient || !strings.Contains(err.Error(), "RAUC's service ended") {
				h.t.Errorf("upgrade: %v of class %q", err, strategy.ClassOf(err))
			}
			h.set(func() { h.during = func() bool { return true } })
			h.connect(h.t, h.bus)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, true, nil)
			h.t = t
			job := h.prepare()
			play(h, job)
			if outcome, err := h.s.Resume(t.Context(), job); err != nil || outcome != strategy.NotDone {
				t.Fatalf("resume: %v, %v", outcome, err)
			}
			h.upgrade(job)
		})
	}
}

// TestWorkerEnded checks that the installation continues in RAUC's service without the
// worker, and that Resume waits for it.
func TestWorkerEnded(t *testing.T) {
	t.Parallel()
	h := newHost(t, true, nil)
	job := h.prepare()
	ctx, cancel := context.WithCancel(t.Context())
	going := make(chan struct{})
	h.set(func() { h.during = func() bool { cancel(); <-going; return true } })
	if _, err := h.s.Upgrade(ctx, job); !errors.Is(err, context.Canceled) {
		t.Fatalf("upgrade: %v", err)
	}
	if _, err := h.s.Upgrade(t.Context(), job); strategy.ClassOf(err) != message.Lock {
		t.Errorf("an upgrade beside it: %v of class %q", err, strategy.ClassOf(err))
	}
	again := h.job(job.Plan)
	again.Progress = func(_ int, text string) {
		if text == "RAUC still installs" {
			close(going)
		}
	}
	if outcome, err := h.s.Resume(t.Context(), again); err != nil || outcome != strategy.RebootRequired || h.installed() != 1 {
		t.Errorf("resume: %v, %v, %d installations", outcome, err, h.installed())
	}
}

// TestLeavesActivation checks a host whose RAUC does not choose the slot that it has
// written.
func TestLeavesActivation(t *testing.T) {
	t.Parallel()
	h := newHost(t, true, nil)
	h.set(func() { h.m.inactive = true })
	h.upgrade(h.prepare())
}

// TestFailures checks the class and text of each failure, and that nothing was written
// to a slot by one that is found before.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old    bool
		bundle fakeBundle
		change func(o *Options)
		class  message.Class
		text   string
	}{
		"signature": {
			bundle: fakeBundle{err: "signature verification failed: Verify error: self-signed certificate"},
			class:  message.Artifact, text: "RAUC: signature verification failed: Verify error: self-signed certificate",
		},
		"signature, old RAUC": {
			old: true, bundle: fakeBundle{err: "signature verification failed"},
			class: message.Artifact, text: "RAUC: rauc info error; run: rauc info /",
		},
		"another kind": {
			bundle: fakeBundle{compatible: "toaster", version: "2"},
			class:  message.Artifact, text: `it is for "toaster", and this machine is "appliance"`,
		},
		"no version": {
			bundle: fakeBundle{compatible: "appliance"},
			class:  message.Artifact, text: "its manifest has no version; set version=",
		},
		"odd version": {
			bundle: fakeBundle{compatible: "appliance", version: "2\x1b[2J"},
			class:  message.Artifact, text: "is no plain text",
		},
		"no file": {
			change: func(o *Options) { o.Bundle = "/nonexistent/2.raucb" },
			class:  message.Artifact, text: "there is no bundle at /nonexistent/2.raucb",
		},
		"no bundle": {
			change: func(o *Options) { o.Bundle = "" },
			class:  message.Artifact, text: "the run has no release, and rauc-bundle is missing",
		},
		"no service": {
			change: func(o *Options) { o.bus = "unix:path=/nonexistent" },
			class:  message.Transient, text: "cannot reach the system bus",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, !c.old, c.change)
			h.set(func() { h.bundles["2.raucb"] = c.bundle })
			plan, err := h.s.Prepare(t.Context(), h.job(message.ChangeSet{}))
			if err == nil || strategy.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%+v, %v of class %q; want class %q and %q", plan, err, strategy.ClassOf(err), c.class, c.text)
			}
			if h.installed() != 0 {
				t.Error("a slot was written")
			}
		})
	}
}

// TestInstallationFails checks the class and text of an installation that fails.
func TestInstallationFails(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]message.Class{
		"Installation error: Failed updating slot rootfs.1: failed to write: No space left on device": message.Space,
		"Installation error: Slot rootfs.1 (/dev/vda3) is too small for image":                        message.Space,
		"Installation error: Compatible mismatch: Expected 'appliance' but bundle manifest has 'x'":   message.Artifact,
		"Installation error: Handler error: Child process exited with code 1":                         message.Install,
		"": message.Install,
	} {
		h := newHost(t, true, nil)
		job := h.prepare()
		told := said
		if said == "" {
			said, told = "gave no reason", "it is not told"
		}
		h.set(func() { h.fails, h.silent = told, told != said })
		outcome, err := h.s.Upgrade(t.Context(), job)
		if err == nil || strategy.ClassOf(err) != want || !strings.Contains(err.Error(), said) {
			t.Errorf("%q: %v, %v of class %q, not %q", said, outcome, err, strategy.ClassOf(err), want)
		}
		if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done {
			t.Errorf("%q: rollback: %v, %v", said, outcome, err)
		}
	}
}

// TestChangedBundle checks that Upgrade installs what was prepared, or nothing.
func TestChangedBundle(t *testing.T) {
	t.Parallel()
	h := newHost(t, true, nil)
	job := h.prepare()
	h.set(func() { h.bundles["2.raucb"] = fakeBundle{compatible: "appliance", version: "3"} })
	if _, err := h.s.Upgrade(t.Context(), job); strategy.ClassOf(err) != message.Artifact || !strings.Contains(err.Error(), "the bundle has version 3, and 2 was prepared") || h.installed() != 0 {
		t.Errorf("upgrade: %v, %d installations", err, h.installed())
	}
}

// TestNotThere checks what a host without RAUC says.
func TestNotThere(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	s, err := New(Options{Bundle: "/2.raucb", StateDir: t.TempDir(), bus: b.address})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Detect(t.Context()); err == nil || !strings.Contains(err.Error(), "install it (Debian: rauc-service)") {
		t.Errorf("detect: %v", err)
	}
}

// TestDownload checks that a host without a release takes the bundle of its server, and that it downloads
// that once, also when its version runs or is rejected.
func TestDownload(t *testing.T) {
	t.Parallel()
	var asked, sent atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/appliance.raucb" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent.Add(1)
		_, _ = w.Write([]byte("a bundle"))
	}))
	t.Cleanup(server.Close)
	h := newHost(t, true, func(o *Options) { o.Bundle = server.URL + "/{compatible}.raucb" })
	h.set(func() { h.bundles["content"] = fakeBundle{compatible: "appliance", version: "2"} })
	if plan, err := h.s.Plan(t.Context(), h.job(message.ChangeSet{})); !errors.Is(err, strategy.ErrNoPlan) || asked.Load() != 0 {
		t.Errorf("plan: %+v, %v, asked %d times", plan, err, asked.Load())
	}
	if job := h.prepare(); job.Plan.Download != 8 || !slices.ContainsFunc(h.told, func(s string) bool { return strings.Contains(s, "8 of 8 bytes") }) {
		t.Errorf("prepare: %+v, told %q", job.Plan, h.told)
	}
	h.upgrade(h.prepare())
	plan, err := h.s.Prepare(t.Context(), strategy.Job{Rejected: message.Rejected{"rootfs": {"2"}}, Progress: func(int, string) {}})
	if err != nil || len(plan.Held) != 1 {
		t.Errorf("a rejected version: %+v, %v", plan, err)
	}
	h.reboot()
	if job := h.prepare(); !job.Plan.Empty() || sent.Load() != 1 {
		t.Errorf("the version that runs is planned as %+v, and the bundle was sent %d times", job.Plan, sent.Load())
	}
}

// TestDamagedBundle checks that a bundle which RAUC refuses, or cannot install, is downloaded
// again, though its server calls what is here unchanged. A refusal that may pass keeps it.
func TestDamagedBundle(t *testing.T) {
	t.Parallel()
	var whole atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		whole.Add(1)
		_, _ = w.Write([]byte("a bundle"))
	}))
	t.Cleanup(server.Close)
	h := newHost(t, true, func(o *Options) { o.Bundle = server.URL + "/2.raucb" })
	good := fakeBundle{compatible: "appliance", version: "2"}
	h.set(func() { h.bundles["content"] = fakeBundle{err: "signature verification failed: digest mismatch"} })
	if _, err := h.s.Prepare(t.Context(), h.job(message.ChangeSet{})); strategy.ClassOf(err) != message.Artifact {
		t.Errorf("prepare: %v", err)
	}
	h.set(func() { h.bundles["content"] = good })
	job := h.prepare()
	for n, fails := range []string{"failed to write: Input/output error", "already processing a different method", "failed to write: No space left on device"} {
		h.set(func() { h.fails = fails })
		if _, err := h.s.Upgrade(t.Context(), job); err == nil {
			t.Errorf("%q: it is installed", fails)
		}
		h.prepare()
		if whole.Load() != 3 {
			t.Errorf("after failure %d, %q, the bundle was downloaded %d times, want 3", n, fails, whole.Load())
		}
	}
	h.set(func() { h.fails = "" })
	h.upgrade(job)
}

// TestUnknownVersion checks that a plan that would take a download is not made.
func TestUnknownVersion(t *testing.T) {
	t.Parallel()
	h := newHost(t, true, func(o *Options) { o.Bundle = "https://updates.example.org/2.raucb" })
	if plan, err := h.s.Plan(t.Context(), h.job(message.ChangeSet{})); !errors.Is(err, strategy.ErrNoPlan) {
		t.Errorf("plan: %+v, %v", plan, err)
	}
}

// TestOptions checks what New says about wrong options.
func TestOptions(t *testing.T) {
	t.Parallel()
	const good = "https://updates.example.org/{compatible}.raucb"
	for text, o := range map[string]Options{
		"":                     {Bundle: good, StateDir: "x"},
		"needs a state folder": {Bundle: good},
		`rauc-bundle has "{version}.raucb"; it may have {compatible}, and the version`: {Bundle: "https://updates.example.org/{version}.raucb", StateDir: "x"},
		"names no server": {Bundle: "2.raucb", StateDir: "x"},
		"use https, or allow http (rauc-allow-http)": {Bundle: "http://updates.example.org/2.raucb", StateDir: "x"},
	} {
		err := o.check()
		if (text == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v; want %q", o, err, text)
		}
	}
	for bundle, want := range map[string]string{good: "https://updates.example.org/Foo%2FBar.raucb", "/srv/{compatible}": "/srv/Foo/Bar", "": ""} {
		if got := (Options{Bundle: bundle}).source(system{compatible: "Foo/Bar"}); got != want {
			t.Errorf("%s is %s", bundle, got)
		}
	}
}

// TestRollbackOf rolls back a run, and then forward again, as a run of its own: from one slot to the other,
// with no bundle.
func TestRollbackOf(t *testing.T) {
	t.Parallel()
	h := newHost(t, true, nil)
	job := h.prepare()
	h.upgrade(job)
	h.reboot()
	if boot := h.booted(); boot != (strategy.Boot{Running: "2"}) {
		t.Fatalf("boot %+v", boot)
	}
	for _, goes := range []string{"1", "2", "1"} {
		plan, err := h.s.PrepareRollback(t.Context(), job)
		if err != nil || len(plan.Changes) != 1 || plan.Changes[0].To != goes || plan.Reboot == "" {
			t.Fatalf("prepare of the way to %s: %+v, %v", goes, plan, err)
		}
		job.RollbackOf = 1
		for range 2 {
			if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.RebootRequired {
				t.Fatalf("rollback: %v, %v", outcome, err)
			}
		}
		back := h.job(plan)
		back.Reversed, back.Staged = true, true
		if missing, err := h.s.Missing(t.Context(), back); err != nil || len(missing) > 0 {
			t.Errorf("before the reboot %v is missing, %v", missing, err)
		}
		h.reboot()
		if outcome, err := h.s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done {
			t.Errorf("rollback after the reboot: %v, %v", outcome, err)
		}
		if boot := h.booted(); boot != (strategy.Boot{Running: goes}) {
			t.Errorf("it has started %+v", boot)
		}
		job = h.job(plan)
	}
	if h.installed() != 1 {
		t.Errorf("RAUC has installed %d bundles", h.installed())
	}
	h.set(func() { h.m.slots[1].version = "3" })
	if plan, err := h.s.PrepareRollback(t.Context(), job); strategy.ClassOf(err) != message.Artifact || !strings.Contains(fmt.Sprint(err), "no other slot has the system from before, version 2") {
		t.Errorf("where another slot was written: %+v, %v", plan, err)
	}
}
