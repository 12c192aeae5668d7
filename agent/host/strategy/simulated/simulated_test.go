package simulated_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/simulated"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

var (
	fresh    = map[string]string{"base-os": "1.0", "kernel": "6.1.0"}
	halfway  = map[string]string{"base-os": "1.1", "kernel": "6.1.0"}
	upgraded = map[string]string{"base-os": "1.1", "kernel": "6.1.1"}
	backHalf = map[string]string{"base-os": "1.0", "kernel": "6.1.1"}
)

func open(t *testing.T, dir string) *simulated.Host {
	t.Helper()
	h, err := simulated.Open(dir, simulated.Options{Random: rand.NewChaCha8([32]byte{1})})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func job(run uint64) strategy.Job {
	return strategy.Job{Run: run, Progress: func(int, string) {}, Fetch: true}
}

// planned is job with the plan that the host makes now.
func planned(ctx context.Context, h *simulated.Host, run uint64) (strategy.Job, error) {
	plan, err := h.Plan(ctx, job(run))
	j := job(run)
	j.Plan = plan
	return j, err
}

// upgradeIn upgrades a host in a run by the plan that it makes now.
func upgradeIn(ctx context.Context, h *simulated.Host, run uint64) (strategy.Outcome, error) {
	j, err := planned(ctx, h, run)
	if err != nil {
		return 0, err
	}
	return h.Upgrade(ctx, j)
}

func versions(t *testing.T, h *simulated.Host) map[string]string {
	t.Helper()
	v, err := h.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantVersions(t *testing.T, h *simulated.Host, want map[string]string) {
	t.Helper()
	if got := versions(t, h); !maps.Equal(got, want) {
		t.Fatalf("versions are %v, want %v", got, want)
	}
}

// actions lists the effects as "action run".
func actions(t *testing.T, h *simulated.Host) []string {
	t.Helper()
	effects, err := h.Effects()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range effects {
		names = append(names, e.Action)
	}
	return names
}

func events(h *simulated.Host) []simulated.Event {
	var told []simulated.Event
	for {
		select {
		case e := <-h.Events():
			told = append(told, e)
		default:
			return told
		}
	}
}

func TestRunFromPrepareToVerify(t *testing.T) {
	t.Parallel()
	h, ctx := open(t, t.TempDir()), t.Context()
	before, err := h.BootID()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := h.Prepare(ctx, job(41))
	if err := errors.Join(h.Detect(ctx), err); err != nil {
		t.Fatal(err)
	}
	j := job(41)
	j.Plan = plan
	wantVersions(t, h, fresh)
	if outcome, err := h.Upgrade(ctx, j); outcome != strategy.RebootRequired || err != nil {
		t.Fatalf("upgrade: %v, %v", outcome, err)
	}
	wantVersions(t, h, halfway)
	if err := h.Verify(ctx, job(41)); err == nil || !strings.Contains(err.Error(), "it should be 6.1.1") {
		t.Fatalf("verify before the boot: %v", err)
	}
	if err := h.Reboot(ctx, strategy.Job{}); err != nil {
		t.Fatal(err)
	}
	if got := events(h); !slices.Equal(got, []simulated.Event{simulated.RebootRequested}) {
		t.Fatalf("events: %v", got)
	}
	if id, err := h.BootID(); err != nil || id != before {
		t.Fatalf("the boot id is %s before the boot, was %s: %v", id, before, err)
	}
	if err := h.Boot(ctx); err != nil {
		t.Fatal(err)
	}
	wantVersions(t, h, upgraded)
	if id, err := h.BootID(); err != nil || id == before {
		t.Fatalf("the boot id is still %s: %v", id, err)
	}
	if outcome, err := h.Resume(ctx, job(41)); outcome != strategy.Done || err != nil {
		t.Fatalf("resume after the boot: %v, %v", outcome, err)
	}
	if err := h.Verify(ctx, job(41)); err != nil {
		t.Fatal(err)
	}
	if got, want := actions(t, h), []string{"prepare", "upgrade", "reboot", "boot"}; !slices.Equal(got, want) {
		t.Fatalf("effects are %v, want %v", got, want)
	}
}

func TestHostGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir)
	if _, err := upgradeIn(t.Context(), first, 1); err != nil {
		t.Fatal(err)
	}
	id, err := first.BootID()
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	wantVersions(t, again, halfway)
	if got, err := again.BootID(); err != nil || got != id {
		t.Fatalf("opening changed the boot id from %s to %s: %v", id, got, err)
	}
	if outcome, err := again.Resume(t.Context(), job(1)); outcome != strategy.RebootRequired || err != nil {
		t.Fatalf("resume: %v, %v", outcome, err)
	}
	if outcome, err := again.Resume(t.Context(), job(2)); outcome != strategy.NotDone || err != nil {
		t.Fatalf("resume of another run: %v, %v", outcome, err)
	}
}

func TestRollback(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, row := range map[string]struct {
		before       func(*simulated.Host) error
		after, final map[string]string
		want         strategy.Outcome
	}{
		"of nothing":      {func(*simulated.Host) error { return nil }, fresh, fresh, strategy.Done},
		"before the boot": {func(h *simulated.Host) error { return upgrade(ctx, h) }, fresh, fresh, strategy.Done},
		"after the boot":  {func(h *simulated.Host) error { return errors.Join(upgrade(ctx, h), h.Boot(ctx)) }, backHalf, fresh, strategy.RebootRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, t.TempDir())
			if err := row.before(h); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if outcome, err := h.Rollback(t.Context(), job(7)); outcome != row.want || err != nil {
					t.Fatal(outcome, err)
				}
				wantVersions(t, h, row.after)
			}
			if outcome, err := h.Resume(t.Context(), job(7)); outcome != strategy.NotDone || err != nil {
				t.Fatalf("resume: %v, %v", outcome, err)
			}
			if err := h.Boot(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantVersions(t, h, row.final)
			if outcome, err := h.Rollback(t.Context(), job(7)); outcome != strategy.Done || err != nil {
				t.Fatal(outcome, err)
			}
		})
	}
}

func upgrade(ctx context.Context, h *simulated.Host) error {
	_, err := upgradeIn(ctx, h, 7)
	return err
}

func TestActionTakesItsTimeAndTells(t *testing.T) {
	t.Parallel()
	var passed time.Duration
	h, err := simulated.Open(t.TempDir(), simulated.Options{
		ActionTime: 10*time.Second + 3,
		Sleep:      func(_ context.Context, d time.Duration) error { passed += d; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	var told []int
	j, err := planned(t.Context(), h, 1)
	if err != nil {
		t.Fatal(err)
	}
	j.Progress = func(percent int, _ string) { told = append(told, percent) }
	if _, err := h.Upgrade(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if passed != 10*time.Second+3 || !slices.Equal(told, []int{25, 50, 75, 100}) {
		t.Fatalf("upgrade took %s and told %v", passed, told)
	}
	if err := h.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if passed != 20*time.Second+6 {
		t.Fatalf("upgrade and boot took %s", passed)
	}
}

// TestDown checks that a host which was told to reboot is down until its boot, also
// for a supervisor that is started meanwhile, and that no event outlives the boot.
func TestDown(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	down := func(want bool) {
		t.Helper()
		if got, err := open(t, h.Dir()).Down(); got != want || err != nil {
			t.Fatalf("down: %v, %v, not %v", got, err, want)
		}
	}
	down(false)
	for range 2 {
		if err := errors.Join(upgrade(t.Context(), h), h.Reboot(t.Context(), strategy.Job{}), h.Reboot(t.Context(), strategy.Job{})); err != nil {
			t.Fatal(err)
		}
		down(true)
		if err := h.Boot(t.Context()); err != nil {
			t.Fatal(err)
		}
		down(false)
		if left := events(h); left != nil {
			t.Fatalf("after the boot there are the events %v", left)
		}
	}
}

func TestStoppedWorkerLeavesNoEffect(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	h, err := simulated.Open(t.TempDir(), simulated.Options{ActionTime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := h.Upgrade(ctx, job(1)); !errors.Is(err, context.Canceled) {
		t.Fatalf("upgrade: %v", err)
	}
	wantVersions(t, h, fresh)
}

// TestMissing checks that what the plan has and the host has not is told: before the
// boot a new kernel is there, after the boot it has to run.
func TestMissing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := open(t, t.TempDir())
	j, err := planned(ctx, h, 7)
	if err != nil {
		t.Fatal(err)
	}
	want := func(when string, names ...string) {
		t.Helper()
		missing, err := h.Missing(ctx, j)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range missing {
			got = append(got, c.String())
		}
		if !slices.Equal(got, names) {
			t.Fatalf("%s there is missing %q, not %q", when, got, names)
		}
	}
	want("at first", "base-os 1.0 → 1.1", "kernel 6.1.0 → 6.1.1")
	if _, err := h.Upgrade(ctx, j); err != nil {
		t.Fatal(err)
	}
	want("before the boot", "kernel 6.1.0 → 6.1.1")
	j.Staged = true
	want("for the boot")
	if err := h.Boot(ctx); err != nil {
		t.Fatal(err)
	}
	j.Staged = false
	want("after the boot")
	if _, err := h.Rollback(ctx, j); err != nil {
		t.Fatal(err)
	}
	want("after the rollback", "base-os 1.0 → 1.1")
}

// TestFallBack checks that a machine which gives the upgraded system up is what it was
// before, tells both versions until that is confirmed, and does so once.
func TestFallBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := open(t, t.TempDir())
	booted := func(want strategy.Boot) {
		t.Helper()
		if got, err := h.Booted(ctx); got != want || err != nil {
			t.Fatalf("booted: %v, %v, not %v", got, err, want)
		}
	}
	set(t, h, "reboot", "fall-back")
	if err := errors.Join(upgrade(ctx, h), h.Reboot(ctx, job(7)), h.Boot(ctx)); err != nil {
		t.Fatal(err)
	}
	wantVersions(t, h, fresh)
	for range 2 {
		booted(strategy.Boot{Running: "6.1.0", Failed: "6.1.1"})
	}
	if err := errors.Join(h.Confirm(ctx, strategy.Boot{Running: "6.1.0"}), h.Confirm(ctx, strategy.Boot{Running: "6.1.0", Failed: "7"})); err != nil {
		t.Fatal(err)
	}
	booted(strategy.Boot{Running: "6.1.0", Failed: "6.1.1"})
	if err := h.Confirm(ctx, strategy.Boot{Running: "6.1.0", Failed: "6.1.1"}); err != nil {
		t.Fatal(err)
	}
	booted(strategy.Boot{Running: "6.1.0"})
	if _, err := upgradeIn(ctx, h, 8); err != nil {
		t.Fatal(err)
	}
	if err := h.Boot(ctx); err != nil {
		t.Fatal(err)
	}
	wantVersions(t, h, upgraded)
	booted(strategy.Boot{Running: "6.1.1"})
}

// TestPlanHoldsBack checks that a plan has no version that was rolled back, and has the
// one after it.
func TestPlanHoldsBack(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	j := job(7)
	j.Rejected = message.Rejected{"kernel": {"6.1.1"}, "base-os": {"0.9"}}
	plan, err := h.Plan(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	want := message.ChangeSet{
		Changes: []message.Change{{Name: "base-os", From: "1.0", To: "1.1"}},
		Held:    []message.HeldPackage{{Name: "kernel", Version: "6.1.0", Offered: "6.1.1", Reason: "it was rolled back"}},
	}
	if !reflect.DeepEqual(plan, want) {
		t.Errorf("the plan is %+v, not %+v", plan, want)
	}
}

// TestPlanOutsideOfARun checks that a new host knows of an upgrade, that it knows of none once it has that,
// also if that came with a release, and of another one once it has fetched.
func TestPlanOutsideOfARun(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	knows := func(when string, fetch bool, want int) {
		t.Helper()
		plan, err := h.Plan(t.Context(), strategy.Job{Fetch: fetch})
		if err != nil || len(plan.Changes) != want {
			t.Errorf("%s its plan is %+v, %v", when, plan, err)
		}
	}
	run := func(id uint64, installs *release.Release) {
		t.Helper()
		j := job(id)
		j.Release, j.ReleaseName = installs, "nov"
		var err error
		if j.Plan, err = h.Prepare(t.Context(), j); err == nil {
			_, err = h.Upgrade(t.Context(), j)
		}
		if err := errors.Join(err, h.Boot(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	knows("at first", false, 2)
	run(7, nil)
	knows("after a run", false, 0)
	knows("when it fetches", true, 2)
	knows("after that", false, 2)
	run(8, &release.Release{Data: []byte("{}"), Installs: map[string]string{"kernel": "7.0"}})
	knows("after a run with a release", false, 0)
}

func TestUnreadableFolder(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ file, content, want string }{
		"packages nested":   {"packages.json", `{"a":{"b":"1"}}`, "packages.json: json: cannot unmarshal object"},
		"packages cut":      {"packages.json", `{"a":`, "packages.json: unexpected EOF"},
		"packages empty":    {"packages.json", `{}`, "it names no package; it should be like"},
		"packages twice":    {"packages.json", `{"a":"1"}{}`, "more follows after the JSON value"},
		"version empty":     {"packages.json", `{"a":""}`, `package "a" has version ""`},
		"boot id":           {"boot-id", "1", `"1" is not a UUID`},
		"unknown action":    {"faults.json", `{"format":"fail"}`, `"format" is not an action; use one of prepare, reboot,`},
		"unknown fault":     {"faults.json", `{"verify":"explode"}`, `"explode" of "verify" is not a fault; use one of fail,`},
		"no class":          {"faults.json", `{"verify":"fail-full: no room"}`, `"fail-full: no room" of "verify" is not a fault; use one of fail,`},
		"fall-back":         {"faults.json", `{"verify":"fall-back"}`, `"fall-back" of "verify" is a fault of reboot alone`},
		"fault of another":  {"faults.json", `{"reboot":"no-reboot"}`, `"no-reboot" of "reboot" is a fault of upgrade alone`},
		"record unnumbered": {"upgrade.json", `{"run":1}`, "it bears no format number"},
		"record is newer":   {"upgrade.json", `{"format":2}`, "written by format 2, this version reads 1"},
		"effects":           {"effects.log", "{\"format\":1,\"action\":\"boot\",\"run\":1,\"boot-id\":\"\"}\nx\n", "effects.log: line 2:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h := open(t, dir)
			if err := upgrade(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, row.file), []byte(row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, resumed := h.Resume(t.Context(), job(7))
			err := errors.Join(h.Detect(t.Context()), resumed, h.Boot(t.Context()), upgrade(t.Context(), h))
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want %q in it", err, row.want)
			}
		})
	}
}

func TestOpenRefusesNegativeTime(t *testing.T) {
	t.Parallel()
	if _, err := simulated.Open(t.TempDir(), simulated.Options{ActionTime: -1}); err == nil {
		t.Fatal("an action of -1ns was taken")
	}
}
