package ostree

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestParseRPMStatus reads output of the form that rpm-ostree prints on Fedora.
func TestParseRPMStatus(t *testing.T) {
	t.Parallel()
	const follows = "fedora:fedora/38/x86_64/silverblue"
	all, made, status, err := parseRPMStatus(recorded(t, "rpm-ostree-status.json"))
	want := deployments{
		{name: "fedora", id: two, label: "38.2", origin: follows, staged: true},
		{name: "fedora", id: one, serial: 3, label: "38.1", origin: follows, booted: true, pinned: true},
	}
	if err != nil || !slices.Equal(all, want) || status.busy() || made[0] != strings.Repeat("a", 64) || made[1] != one {
		t.Errorf("%+v, %q, %+v, %v", all, made, status, err)
	}
	if _, _, status, err := parseRPMStatus(`{"deployments": [], "transaction": ["upgrade", ":1.5", "/"]}`); err != nil || !status.busy() {
		t.Errorf("a transaction is not seen: %v", err)
	}
	for _, odd := range []string{"", "null x", `{"deployments": [{}]}`, `{"deployments": 1}`} {
		if all, _, _, err := parseRPMStatus(odd); err == nil {
			t.Errorf("%q is read as %+v", odd, all)
		}
	}
}

// TestParseBootcStatus reads output of the form that bootc prints.
func TestParseBootcStatus(t *testing.T) {
	t.Parallel()
	status, err := parseBootcStatus(recorded(t, "bootc-status.json"))
	const image = "quay.io/example/os:latest"
	want := deployments{
		{name: "default", id: "sha256:" + one, label: "stream9.1", origin: image, booted: true},
		{name: "default", id: "sha256:" + three, label: "stream9.0", origin: image},
	}
	if err != nil || !slices.Equal(status.deployments(), want) || status.Status.Booted.CachedUpdate.version() != "stream9.2 (222222222222)" {
		t.Errorf("%+v, %v", status.deployments(), err)
	}
	status.Status.RollbackQueued = true
	if got := status.deployments(); got[0] != want[1] || got[1] != want[0] {
		t.Errorf("with a rollback that is queued: %+v", got)
	}
	for _, odd := range []string{"", `{"status": {"booted": null}}`, `{"status": {"booted": {"image": null}}}`, `[]`} {
		if status, err := parseBootcStatus(odd); err == nil {
			t.Errorf("%q is read as %+v", odd, status)
		}
	}
}

// tools are rpm-ostree, bootc and ostree on a host with releases 1 and 2 of one branch. They
// print what is recorded, and do what their documentation says.
type tools struct {
	all deployments
	// seen and fetched are what the host knows of the remote and has on disk.
	head, seen, fetched string
	downloads           bool // of bootc
	downloaded          string
	busy                int
	calls               []string
}

var labels = map[string]string{one: "1", two: "2", three: "3"}

// stage makes a release the one that starts next.
func (h *tools) stage(id string) {
	h.all = slices.DeleteFunc(h.all, func(d deployment) bool { return d.staged })
	h.all = append(deployments{{name: "default", id: id, label: labels[id], staged: true}}, h.all...)
}

func (h *tools) back() {
	i := slices.IndexFunc(h.all, func(d deployment) bool { return !d.booted })
	d := h.all[i]
	h.all = append(deployments{d}, slices.Delete(h.all, i, i+1)...)
}

// start starts the machine.
func (h *tools) start(fails bool) {
	next := 0
	if fails {
		next = 1
	}
	for i := range h.all {
		h.all[i].booted, h.all[i].staged = i == next, false
	}
}

func (h *tools) run(_ context.Context, name string, args ...string) (string, error) {
	call := strings.Join(append([]string{name}, args...), " ")
	h.calls = append(h.calls, call)
	switch call {
	case "rpm-ostree status --json":
		return h.rpmStatus()
	case "bootc status --json":
		return h.bootcStatus()
	case "ostree pull --commit-metadata-only fedora stable", "bootc upgrade --check":
		h.seen = h.head
	case "ostree rev-parse fedora:stable":
		return h.seen + "\n", nil
	case "ostree show --print-metadata-key=version " + h.seen:
		return "'" + labels[h.seen] + "'\n", nil
	case "ostree pull --commit-metadata-only fedora stable@" + two, "rpm-ostree deploy --download-only " + two:
		h.fetched = two
	case "ostree rev-parse " + two:
		return two + "\n", nil
	case "ostree show --print-metadata-key=version " + two:
		return "'2'\n", nil
	case "rpm-ostree deploy --cache-only " + two, "bootc switch quay.io:5000/example/system@sha256:" + two:
		h.stage(two)
	case "rpm-ostree upgrade --download-only":
		h.fetched = h.head
	case "rpm-ostree upgrade --cache-only":
		h.stage(h.fetched)
	case "bootc upgrade":
		h.stage(h.head)
	case "bootc upgrade --help":
		if h.downloads {
			return "--download-only", nil
		}
	case "bootc upgrade --download-only":
		h.downloaded = h.head
	case "bootc upgrade --from-downloaded":
		h.stage(h.downloaded)
		h.downloaded = ""
	case "rpm-ostree deploy " + one, "bootc switch quay.io:5000/example/system@sha256:" + one:
		h.stage(one)
	case "rpm-ostree rollback", "bootc rollback":
		h.back()
	case "rpm-ostree cleanup --pending", "ostree admin undeploy 0":
		h.all = h.all[1:]
	default:
		return "", errors.New("there is no such call: " + call)
	}
	return "", nil
}

func (h *tools) rpmStatus() (string, error) {
	var status rpmStatus
	for _, d := range h.all {
		status.Deployments = append(status.Deployments, struct {
			Name         string `json:"osname"`
			Checksum     string `json:"checksum"`
			BaseChecksum string `json:"base-checksum"`
			Version      string `json:"version"`
			BaseVersion  string `json:"base-version"`
			Origin       string `json:"origin"`
			Serial       int    `json:"serial"`
			Booted       bool   `json:"booted"`
			Staged       bool   `json:"staged"`
			Pinned       bool   `json:"pinned"`
		}{d.name, strings.Repeat("a", 64), d.id, d.label, "", "fedora:stable", 0, d.booted, d.staged, false})
	}
	if h.busy > 0 {
		h.busy--
		status.Transaction = json.RawMessage(`["upgrade"]`)
	}
	text, err := json.Marshal(status)
	return string(text), err
}

func (h *tools) bootcStatus() (string, error) {
	var status bootcStatus
	image := func(id string) *bootcImage {
		i := &bootcImage{Version: labels[id], Digest: "sha256:" + id}
		i.Image.Image = "quay.io:5000/example/system:stable"
		return i
	}
	booted := slices.IndexFunc(h.all, func(d deployment) bool { return d.booted })
	for i, d := range h.all {
		entry := &bootcEntry{Image: image(d.id)}
		switch {
		case d.booted:
			status.Status.Booted = entry
			if h.seen != "" && h.seen != d.id {
				entry.CachedUpdate = image(h.seen)
			}
		case d.staged:
			status.Status.Staged = entry
		case status.Status.Rollback == nil:
			status.Status.Rollback, status.Status.RollbackQueued = entry, i < booted
		default:
			status.Status.Others = append(status.Status.Others, *entry)
		}
	}
	if h.downloaded != "" {
		status.Status.Staged = &bootcEntry{Image: image(h.downloaded), DownloadOnly: true}
	}
	text, err := json.Marshal(status)
	return string(text), err
}

// adapter is a strategy on those tools.
func adapter(t *testing.T, tool Tool, downloads bool) (*tools, *Strategy) {
	t.Helper()
	h := &tools{all: deployments{{name: "default", id: one, label: "1", booted: true}}, head: one, downloads: downloads}
	s, err := New(Options{Tool: tool, StateDir: t.TempDir(), root: t.TempDir(), run: h.run})
	if err != nil {
		t.Fatal(err)
	}
	return h, s
}

var adapters = map[string]struct {
	tool      Tool
	downloads bool
}{"rpm-ostree": {RPMOSTree, false}, "bootc": {Bootc, false}, "bootc that downloads": {Bootc, true}}

func jobOf(plan message.ChangeSet) strategy.Job {
	return strategy.Job{Plan: plan, Progress: func(int, string) {}}
}

func prepare(t *testing.T, s *Strategy) strategy.Job {
	t.Helper()
	plan, err := s.Prepare(t.Context(), jobOf(message.ChangeSet{}))
	if err != nil {
		t.Fatal(err)
	}
	return jobOf(plan)
}

func upgrade(t *testing.T, s *Strategy, job strategy.Job) {
	t.Helper()
	if outcome, err := s.Upgrade(t.Context(), job); err != nil || outcome != strategy.RebootRequired {
		t.Fatalf("upgrade: %v, %v", outcome, err)
	}
}

// TestAdapters plays an upgrade, a rollback and a way back of the machine with each tool.
func TestAdapters(t *testing.T) {
	t.Parallel()
	for name, c := range adapters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := adapter(t, c.tool, c.downloads)
			if job := prepare(t, s); !job.Plan.Empty() {
				t.Errorf("without a newer version the plan is %+v", job.Plan)
			}
			h.head = two
			job := prepare(t, s)
			if want := (message.Change{Name: "default", From: "1 (111111111111)", To: "2 (222222222222)"}); len(job.Plan.Changes) != 1 || job.Plan.Changes[0] != want || len(h.all) != 1 {
				t.Fatalf("prepare: %+v, %+v", job.Plan, h.all)
			}
			if plan, err := s.Plan(t.Context(), jobOf(message.ChangeSet{})); err != nil || !slices.Equal(plan.Changes, job.Plan.Changes) {
				t.Errorf("plan: %+v, %v", plan, err)
			}
			if outcome, err := s.Resume(t.Context(), job); err != nil || outcome != strategy.NotDone {
				t.Errorf("resume before: %v, %v", outcome, err)
			}
			upgrade(t, s, job)
			h.start(false)
			if err := s.Verify(t.Context(), job); err != nil {
				t.Error(err)
			}
			if outcome, err := s.Rollback(t.Context(), job); err != nil || outcome != strategy.RebootRequired {
				t.Errorf("rollback: %v, %v", outcome, err)
			}
			h.start(false)
			if outcome, err := s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done || h.all[0].id != one {
				t.Errorf("rollback after the reboot: %v, %v, %+v", outcome, err, h.all)
			}

			h.all = h.all[:1]
			upgrade(t, s, prepare(t, s))
			h.start(true)
			boot, err := s.Booted(t.Context())
			if want := (strategy.Boot{Running: "1 (111111111111)", Failed: "2 (222222222222)"}); err != nil || boot != want {
				t.Fatalf("boot: %+v, %v", boot, err)
			}
			if err := s.Confirm(t.Context(), boot); err != nil || len(h.all) != 1 {
				t.Errorf("confirm: %v, %+v", err, h.all)
			}
			rejected := jobOf(message.ChangeSet{})
			rejected.Rejected = message.Rejected{"default": {boot.Failed}}
			if plan, err := s.Prepare(t.Context(), rejected); err != nil || len(plan.Held) != 1 || len(plan.Changes) != 0 {
				t.Errorf("a version that was rolled back: %+v, %v", plan, err)
			}
		})
	}
}

// started notes that the machine has started just now, on a host whose tool decides what starts.
func started(t *testing.T, s *Strategy) {
	t.Helper()
	mark := filepath.Join(s.o.root, "run/ostree-booted")
	if err := os.MkdirAll(filepath.Dir(mark), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The times of files are those of the clock's last tick.
	for path, at := range map[string]time.Time{mark: time.Now().Add(-time.Second), filepath.Join(s.o.StateDir, "restored"): time.Now().Add(-time.Minute)} {
		if err := os.Chtimes(path, at, at); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// TestAdaptersRollBack rolls back a run, and then forward again. Before its reboot the old system is the
// one that starts next, and none that the machine gave up.
func TestAdaptersRollBack(t *testing.T) {
	t.Parallel()
	for name, c := range adapters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := adapter(t, c.tool, c.downloads)
			h.head = two
			job := prepare(t, s)
			upgrade(t, s, job)
			h.start(false)
			started(t, s)
			for _, goes := range []string{"1 (111111111111)", "2 (222222222222)", "1 (111111111111)"} {
				before := len(h.calls)
				plan, err := s.PrepareRollback(t.Context(), job)
				if err != nil || len(plan.Changes) != 1 || plan.Changes[0].To != goes || plan.Reboot == "" || !slices.Equal(plan.Changes, strategy.Reversed(job.Plan.Changes)) {
					t.Fatalf("prepare of the way to %s: %+v, %v", goes, plan, err)
				}
				if changing := slices.DeleteFunc(slices.Clone(h.calls[before:]), func(call string) bool { return strings.Contains(call, "status") }); len(changing) > 0 {
					t.Errorf("prepare calls %q", changing)
				}
				job.RollbackOf = 1
				if outcome, err := s.Rollback(t.Context(), job); err != nil || outcome != strategy.RebootRequired {
					t.Fatalf("rollback: %v, %v", outcome, err)
				}
				back := jobOf(plan)
				back.Staged, back.Reversed = true, true
				if missing, err := s.Missing(t.Context(), back); err != nil || len(missing) > 0 {
					t.Errorf("before the reboot %v is missing, %v", missing, err)
				}
				if boot, err := s.Booted(t.Context()); err != nil || boot.Failed != "" {
					t.Errorf("before the reboot %+v, %v", boot, err)
				}
				h.start(false)
				started(t, s)
				if outcome, err := s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done {
					t.Fatalf("rollback after the reboot: %v, %v", outcome, err)
				}
				if boot, err := s.Booted(t.Context()); err != nil || boot != (strategy.Boot{Running: goes}) {
					t.Errorf("it has started %+v, %v", boot, err)
				}
				if missing, err := s.Missing(t.Context(), back); err != nil || len(missing) > 0 {
					t.Errorf("%v is missing, %v", missing, err)
				}
				job = jobOf(plan)
			}
			h.all = h.all[:1]
			if plan, err := s.PrepareRollback(t.Context(), job); strategy.ClassOf(err) != message.Artifact || !strings.Contains(err.Error(), "2 (222222222222) is not among the deployments any more") {
				t.Errorf("without the other system: %+v, %v", plan, err)
			}
			h.all = deployments{{name: "default", id: three, label: "3", booted: true}}
			if plan, err := s.PrepareRollback(t.Context(), job); err != nil || !plan.Empty() {
				t.Errorf("where somebody else has deployed another one: %+v, %v", plan, err)
			}
		})
	}
}

// TestAdaptersOldSystemFails rolls back a run to a system that does not start any more: the machine
// goes back to the one that ran, and that is told.
func TestAdaptersOldSystemFails(t *testing.T) {
	t.Parallel()
	for name, c := range adapters {
		h, s := adapter(t, c.tool, c.downloads)
		h.head = two
		job := prepare(t, s)
		upgrade(t, s, job)
		h.start(false)
		started(t, s)
		if outcome, err := s.Rollback(t.Context(), job); err != nil || outcome != strategy.RebootRequired {
			t.Fatalf("%s: rollback: %v, %v", name, outcome, err)
		}
		h.start(true)
		started(t, s)
		if boot, err := s.Booted(t.Context()); err != nil || boot != (strategy.Boot{Running: "2 (222222222222)", Failed: "1 (111111111111)"}) {
			t.Errorf("%s: it has started %+v, %v", name, boot, err)
		}
	}
}

// TestAdaptersUnplanned checks that what is deployed is what was planned, or nothing.
func TestAdaptersUnplanned(t *testing.T) {
	t.Parallel()
	for name, c := range adapters {
		h, s := adapter(t, c.tool, c.downloads)
		h.head = two
		job := prepare(t, s)
		h.head, h.fetched = three, three
		if c.downloads {
			upgrade(t, s, job)
			continue
		}
		outcome, err := s.Upgrade(t.Context(), job)
		if strategy.ClassOf(err) != message.Install || !strings.Contains(err.Error(), "2 (222222222222) would not start next but 3 (333333333333)") || len(h.all) != 1 {
			t.Errorf("%s: %v, %v, %+v", name, outcome, err, h.all)
		}
	}
}

// TestAdaptersTellHowToGoBack rolls back a host on which somebody has deployed another release
// meanwhile: a rollback of the tool would go to that. What is printed instead goes to the release of before.
func TestAdaptersTellHowToGoBack(t *testing.T) {
	t.Parallel()
	for name, c := range adapters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := adapter(t, c.tool, c.downloads)
			h.head = two
			job := prepare(t, s)
			upgrade(t, s, job)
			h.start(false)
			h.all = slices.Insert(h.all, 1, deployment{name: "default", id: three, label: "3"})
			_, err := s.Rollback(t.Context(), job)
			if strategy.ClassOf(err) != message.Install {
				t.Fatalf("rollback: %v", err)
			}
			told := map[Tool]remedy.Remedy{RPMOSTree: remedy.RPMOSTreeDeploy, Bootc: remedy.BootcSwitch}[c.tool]
			words := strings.Fields(realhost.Remedy(t, told, err.Error()))
			if _, err := h.run(t.Context(), words[0], words[1:]...); err != nil {
				t.Fatal(err)
			}
			h.start(false)
			if outcome, err := s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done || h.all[0].id != one || !h.all[0].booted {
				t.Errorf("after the remedy rollback says %v, %v on %+v", outcome, err, h.all)
			}
		})
	}
}

// TestAdaptersWait checks that Resume waits for a daemon that goes on by itself.
func TestAdaptersWait(t *testing.T) {
	t.Parallel()
	h, s := adapter(t, RPMOSTree, false)
	h.head = two
	job := prepare(t, s)
	h.busy = 1
	h.stage(two)
	if outcome, err := s.Resume(t.Context(), job); err != nil || outcome != strategy.RebootRequired || h.busy != 0 {
		t.Errorf("resume: %v, %v", outcome, err)
	}
}

// TestUnsigned reads the deployments of a host whose system has no signature though its remote
// wants one: by leaving signatures out, or it says what to do if ostree cannot.
func TestUnsigned(t *testing.T) {
	t.Parallel()
	for text, skips := range map[string]bool{"": true, "its remote wants one": false} {
		s, err := New(Options{StateDir: t.TempDir(), run: func(_ context.Context, _ string, args ...string) (string, error) {
			switch {
			case !slices.Contains(args, "--skip-signatures"):
				return "", errors.New("ostree admin status: GPG verification enabled, but no signatures found")
			case !skips:
				return "", errors.New("ostree admin status: Unknown option --skip-signatures")
			}
			return "* debian " + one + ".1\n    Version: 1.0\n    origin refspec: origin:stable\n", nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Versions(t.Context())
		if (err == nil) != skips || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

// TestOptions checks what New says about wrong options.
func TestOptions(t *testing.T) {
	t.Parallel()
	for text, o := range map[string]Options{
		"\"dnf\" is not a tool": {Tool: "dnf"},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v; want %q", o, err, text)
		}
	}
}
