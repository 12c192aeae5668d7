package simulated_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/simulated"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// do carries out one action of run 7.
func do(ctx context.Context, h *simulated.Host, action string) error {
	switch action {
	case "prepare":
		_, err := h.Prepare(ctx, job(7))
		return err
	case "upgrade":
		return upgrade(ctx, h)
	case "reboot":
		return h.Reboot(ctx, strategy.Job{})
	case "verify":
		return h.Verify(ctx, job(7))
	case "rollback":
		_, err := h.Rollback(ctx, job(7))
		return err
	default:
		_, err := h.Resume(ctx, job(7))
		return err
	}
}

var faulty = []string{"prepare", "upgrade", "reboot", "verify", "resume", "rollback"}

// ready returns a host on which each action of run 7 succeeds.
func ready(t *testing.T) *simulated.Host {
	t.Helper()
	h := open(t, t.TempDir())
	if err := errors.Join(upgrade(t.Context(), h), h.Boot(t.Context())); err != nil {
		t.Fatal(err)
	}
	return h
}

func set(t *testing.T, h *simulated.Host, action, fault string) {
	t.Helper()
	if err := h.SetFaults(map[string]string{action: fault}); err != nil {
		t.Fatal(err)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	for _, action := range faulty {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			h := ready(t)
			before := actions(t, h)
			set(t, h, action, "fail")
			for range 2 {
				if err := do(t.Context(), h, action); err == nil || err.Error() != "simulated failure of "+action {
					t.Fatalf("got %v", err)
				}
			}
			set(t, h, action, "fail: no room: 3 MiB")
			if err := do(t.Context(), h, action); err == nil || err.Error() != "no room: 3 MiB" {
				t.Fatalf("got %v", err)
			}
			if got := actions(t, h); !slices.Equal(got, before) || events(h) != nil {
				t.Fatalf("a failure had effects %v after %v", got, before)
			}
			if err := h.SetFaults(nil); err != nil {
				t.Fatal(err)
			}
			if err := do(t.Context(), h, action); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// start starts an action that does not end by itself.
func start(ctx context.Context, h *simulated.Host, action string) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- do(ctx, h, action) }()
	return ended
}

func TestHangLastsAsLongAsTheWorker(t *testing.T) {
	t.Parallel()
	for _, action := range faulty {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			h := ready(t)
			before := actions(t, h)
			set(t, h, action, "hang")
			ctx, stop := context.WithCancel(t.Context())
			ended := start(ctx, h, action)
			select {
			case err := <-ended:
				t.Fatalf("it ended by itself: %v", err)
			default:
				stop()
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			if got := actions(t, h); !slices.Equal(got, before) {
				t.Fatalf("a hang had effects %v after %v", got, before)
			}
		})
	}
}

func TestCrashHappensOnce(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"crash", "crash-before", "crash-after"} {
		for _, action := range faulty {
			t.Run(fault+" in "+action, func(t *testing.T) {
				t.Parallel()
				h := ready(t)
				before := len(actions(t, h))
				set(t, h, action, fault)
				ctx, stop := context.WithCancel(t.Context())
				ended := start(ctx, h, action)
				awaitCrash(t, h, ended)
				stop()
				if err := <-ended; err == nil || !errors.Is(err, context.Canceled) {
					t.Fatalf("the crashed action answered %v", err)
				}
				had := len(actions(t, h)) > before
				if want := fault == "crash-after" && action != "verify" && action != "resume"; had != want {
					t.Fatalf("effect came about: %v, want %v", had, want)
				}
				if err := do(t.Context(), open(t, h.Dir()), action); err != nil {
					t.Fatalf("second time: %v", err)
				}
			})
		}
	}
}

func TestPowerOffHappensOnce(t *testing.T) {
	t.Parallel()
	for _, action := range faulty {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			h := ready(t)
			before := actions(t, h)
			set(t, h, action, "power-off")
			ctx, stop := context.WithCancel(t.Context())
			ended := start(ctx, h, action)
			for e := simulated.Event(0); e != simulated.PoweredOff; {
				select {
				case e = <-h.Events():
				case err := <-ended:
					t.Fatalf("it ended with its power on: %v", err)
				}
			}
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatalf("the action without power answered %v", err)
			}
			if got := actions(t, h); !slices.Equal(got, before) {
				t.Fatalf("it had effects %v after %v", got, before)
			}
			if err := do(t.Context(), open(t, h.Dir()), action); err != nil {
				t.Fatalf("second time: %v", err)
			}
		})
	}
}

func awaitCrash(t *testing.T, h *simulated.Host, ended <-chan error) {
	t.Helper()
	for {
		select {
		case e := <-h.Events():
			if e == simulated.Crashed {
				return
			}
		case err := <-ended:
			t.Fatalf("it ended without a crash: %v", err)
		}
	}
}

func TestResumeTellsTheTruthAfterACrash(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault string
		boot  bool
		want  strategy.Outcome
	}{
		"before the effect":            {"crash-before", false, strategy.NotDone},
		"before the effect and booted": {"crash-before", true, strategy.NotDone},
		"after the effect":             {"crash-after", false, strategy.RebootRequired},
		"after the effect and booted":  {"crash-after", true, strategy.Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, t.TempDir())
			set(t, h, "upgrade", row.fault)
			ctx, stop := context.WithCancel(t.Context())
			ended := start(ctx, h, "upgrade")
			awaitCrash(t, h, ended)
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			h = open(t, h.Dir())
			if row.boot {
				if err := h.Boot(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := h.Resume(t.Context(), job(7)); got != row.want || err != nil {
				t.Fatalf("resume: %v, %v, want %v", got, err, row.want)
			}
		})
	}
}

func TestUpgradeWithoutReboot(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	set(t, h, "upgrade", "no-reboot")
	if outcome, err := upgradeIn(t.Context(), h, 7); outcome != strategy.Done || err != nil {
		t.Fatalf("upgrade: %v, %v", outcome, err)
	}
	wantVersions(t, h, upgraded)
	if err := h.Verify(t.Context(), job(7)); err != nil {
		t.Fatal(err)
	}
}

func TestSetFaultsRefusesWhatItWouldNotRead(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	err := h.SetFaults(map[string]string{"upgrade": "fails"})
	if err == nil || !strings.Contains(err.Error(), `"fails" of "upgrade" is not a fault`) {
		t.Fatalf("got %v", err)
	}
	if err := upgrade(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

func TestEventsNobodyReceivesDoNotBlock(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	for range 50 {
		if err := h.Reboot(t.Context(), strategy.Job{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(events(h)); got != 16 {
		t.Fatalf("%d events were kept, want 16", got)
	}
}

// TestFailureWithAClass checks that a failure has the class that its fault names.
func TestFailureWithAClass(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]struct {
		class message.Class
		text  string
	}{
		"fail":                         {"", "simulated failure of verify"},
		"fail: fail-space: no room":    {"", "fail-space: no room"},
		"fail-space":                   {message.Space, "simulated failure of verify"},
		"fail-repository: down: again": {message.Repository, "down: again"},
	} {
		h := ready(t)
		set(t, h, "verify", fault)
		err := h.Verify(t.Context(), job(7))
		if err == nil || err.Error() != want.text || strategy.ClassOf(err) != want.class {
			t.Errorf("%q fails with %v of class %q", fault, err, strategy.ClassOf(err))
		}
	}
}
