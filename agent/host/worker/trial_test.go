package worker

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// afterHost are checks after the upgrade that note when they run.
type afterHost struct {
	passing
	calls *callList
	// fails is why they fail; empty while they pass.
	fails string
}

func (c afterHost) Run(_ context.Context, t message.Task) message.Outcome {
	c.calls.add("checks")
	return t.Outcome(c.fails == "", c.fails)
}

// checked has the workers from now on run checks with a result, and notes what they call.
func (r *rig) checked(fails string, confirm error) *callList {
	calls := &callList{}
	r.change = func(o *Options) {
		o.Strategy = bootSpy{r.host, r.host, calls, confirm}
		o.Checks = afterHost{calls: calls, fails: fails}
	}
	return calls
}

// check has the checks after the upgrade of run 10 run, and returns their outcome.
func (r *rig) check(attempt int) message.Outcome {
	r.t.Helper()
	t := message.Task{Run: 10, Kind: message.AfterHost, Host: "h01", Attempt: attempt}
	r.hostLog.ask(t)
	for r.life(func() bool { return len(r.hostLog.wanted()) == 0 }) {
	}
	r.hostLog.mu.Lock()
	defer r.hostLog.mu.Unlock()
	return r.hostLog.outcomes[len(r.hostLog.outcomes)-1]
}

// upgradeUnderChecks upgrades the host to 6.1.1 in a run that checks it afterwards, up to
// the reply to the reboot.
func (r *rig) upgradeUnderChecks() {
	r.t.Helper()
	r.checks = true
	r.bear()
	r.prepare()
	expect(r, message.Prepare, message.Done)
	r.command(11, message.Upgrade)
	expect(r, message.Upgrade, message.RebootRequired)
	r.command(12, message.Reboot)
	expect(r, message.Reboot, message.Done)
}

func isConfirmed(call string) bool { return call == "confirm 6.1.1" }

// TestConfirmedAfterChecks checks that a system which a run with checks has installed is
// confirmed after these have passed, not before, and before the site is told: wherever the
// worker is killed.
func TestConfirmedAfterChecks(t *testing.T) {
	t.Parallel()
	play := func(r *rig) {
		r.t.Helper()
		calls := r.checked("", nil)
		r.upgradeUnderChecks()
		if slices.ContainsFunc(calls.list(), isConfirmed) {
			r.t.Errorf("it is confirmed before the checks: %q", calls.list())
		}
		if got := r.check(0); !got.OK {
			r.t.Errorf("the outcome is %+v", got)
		}
		if at := slices.IndexFunc(calls.list(), isConfirmed); at < 0 || at < slices.Index(calls.list(), "checks") {
			r.t.Errorf("the calls are %q", calls.list())
		}
		if id, _ := r.host.BootID(); r.boots().Judged != id {
			r.t.Errorf("the site was told that the checks have passed, and the boots are %+v", r.boots())
		}
	}
	var calm *rig
	inBubble(t, func(r *rig) { calm = r; play(r) })
	cells := 0
	for label, visits := range calm.visits {
		for visit := range visits {
			cells++
			t.Run(label, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(r *rig) {
					r.dieAt, r.visit = label, visit+1
					play(r)
				})
			})
		}
	}
	if visits := calm.visits; visits["before pass"] != 1 || visits["after pass"] != 1 || visits["before boots"] < 3 || cells < 60 {
		t.Errorf("only %d places to be killed at: %v", cells, slices.Sorted(maps.Keys(visits)))
	}
}

// TestFailedChecksConfirmNothing checks that a system whose checks fail is not confirmed: not
// by the worker that is started again, not at the next start of the machine, not by the next
// run, and not without the site. When the checks pass after all, it is.
func TestFailedChecksConfirmNothing(t *testing.T) {
	t.Parallel()
	later := map[string]func(*rig){
		"the worker is started again": func(r *rig) { r.idle() },
		"the machine starts again":    func(r *rig) { r.boot(); r.idle() },
		"the next run": func(r *rig) {
			c := message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(time.Hour)}
			r.hostLog.forget()
			r.hostLog.send(message.Record{Seq: 20, Kind: message.CommandAll, Checks: true, Body: c.Encode()})
			expect(r, message.Prepare, message.Done)
			r.boot()
			r.idle()
		},
		"the site cannot be reached": func(r *rig) {
			site := r.change
			r.change = func(o *Options) { site(o); o.HostLog = unreachable() }
			r.boot()
			r.idleFor(20 * time.Minute)
			r.change = site
		},
	}
	for name, then := range later {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				calls := r.checked("no web", nil)
				r.upgradeUnderChecks()
				if got := r.check(0); got.OK || got.Text != "no web" {
					t.Errorf("the outcome is %+v", got)
				}
				then(r)
				if slices.ContainsFunc(calls.list(), isConfirmed) {
					t.Fatalf("it is confirmed: %q", calls.list())
				}
				if name == "the next run" {
					return
				}
				calls = r.checked("", nil)
				if got := r.check(1); !got.OK || !slices.ContainsFunc(calls.list(), isConfirmed) {
					t.Errorf("the checks pass: %+v, and the calls are %q", got, calls.list())
				}
			})
		})
	}
}

// TestTrialEndsWithoutChecks checks that a system which is on trial is confirmed at once when
// a command says that its run has no checks after the upgrade, as one of an older site does.
func TestTrialEndsWithoutChecks(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.checked("no web", nil)
		r.upgradeUnderChecks()
		r.check(0)
		c := message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(time.Hour)}
		r.hostLog.forget()
		r.hostLog.send(message.Record{Seq: 20, Kind: message.CommandAll, Body: c.Encode()})
		expect(r, message.Prepare, message.Done)
		r.idle()
		if !slices.ContainsFunc(calls.list(), isConfirmed) {
			t.Errorf("the calls are %q", calls.list())
		}
	})
}

// TestRebootBeforeItsCommand checks that a machine which starts the new system before it was
// told to reboot does not confirm it as after an ordinary start.
func TestRebootBeforeItsCommand(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.checked("", nil)
		r.checks = true
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
		r.boot()
		r.idle()
		if slices.ContainsFunc(calls.list(), isConfirmed) {
			t.Errorf("the calls are %q", calls.list())
		}
	})
}

// TestPassedIsRemembered checks that checks which have passed are not run again for the same
// task: they could fail now, and the system is confirmed.
func TestPassedIsRemembered(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.checked("", nil)
		r.upgradeUnderChecks()
		r.dieAt, r.visit = "after pass", 1
		got := r.check(0)
		if n := strings.Count(strings.Join(calls.list(), ","), "checks"); !got.OK || n != 1 || r.visits["after pass"] != 2 {
			t.Errorf("the outcome is %+v after %d checks, with %v", got, n, r.visits)
		}
	})
}

// TestPassedAndNotConfirmed checks that a host which cannot confirm its system has failed its
// checks: its next start would undo the upgrade. It is tried with the next checks.
func TestPassedAndNotConfirmed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.checked("", errors.New("no boot loader"))
		r.upgradeUnderChecks()
		if got := r.check(0); got.OK || got.Text != "cannot confirm that 6.1.1 runs: no boot loader" {
			t.Errorf("the outcome is %+v", got)
		}
		calls := r.checked("", nil)
		if got := r.check(1); !got.OK || !slices.ContainsFunc(calls.list(), isConfirmed) {
			t.Errorf("the outcome is %+v, the calls are %q", got, calls.list())
		}
	})
}

// TestAcceptedOnTrial checks that a version whose checks failed is confirmed when a person
// accepts it on the host, within a minute, and that this does not count for a later upgrade to
// it.
func TestAcceptedOnTrial(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.checked("no web", nil)
		r.upgradeUnderChecks()
		r.check(0)
		dir := filepath.Join(r.dir, "state")
		if _, err := Accept(dir, "6.1.0", time.Now(), durable.WriteFile); err == nil || !strings.Contains(err.Error(), "; on trial are ") || !strings.Contains(err.Error(), "6.1.1") {
			t.Errorf("another version: %v", err)
		}
		w := 0
		for r.life(func() bool {
			if w++; w == 2 {
				if got, err := Accept(dir, "6.1.1", time.Now(), durable.WriteFile); got != nil || err != nil {
					t.Errorf("accepted is %v, %v", got, err)
				}
				time.Sleep(2 * message.Heartbeat)
			}
			return w > 2
		}) {
		}
		if !slices.ContainsFunc(calls.list(), isConfirmed) {
			t.Errorf("the calls are %q", calls.list())
		}
		if _, err := Accept(dir, "6.1.1", time.Now(), durable.WriteFile); err == nil {
			t.Error("it is accepted twice")
		}
		upgrade := commandAt(11, 10, message.Upgrade, "h01")
		upgrade.Checks = true
		plan := message.ChangeSet{Changes: []message.Change{{Name: "kernel", From: "6.1.0", To: "6.1.1"}}}
		again, err := decide.State{Journal: prepared(), Boots: r.boots()}.Receive(upgrade, decide.Seen{Host: "h01", Confirms: true, Prepared: decide.KeptPlan{Run: 10, Plan: plan}}, time.Now())
		if err != nil || !again.Boots.OnTrial(strategy.Boot{Running: "6.1.1"}, time.Now()) || again.Boots.Trial.Since.IsZero() {
			t.Errorf("a later upgrade leaves %+v, %v", again.Boots.Trial, err)
		}
	})
}

// wentBack is a machine that gave up the system which runs, by boot counting: nobody has
// confirmed it.
type wentBack struct{ bootSpy }

func (wentBack) Booted(context.Context) (strategy.Boot, error) {
	return strategy.Boot{Running: "6.1.0", Failed: "6.1.1"}, nil
}

func (wentBack) Missing(_ context.Context, job strategy.Job) ([]message.Change, error) {
	return job.Plan.Changes, nil
}

// TestGoesBackBeforeChecks checks a machine that goes back between the reply and the checks:
// what it went back to is confirmed, the version is rejected, and the checks of the run fail
// although they pass on the old system.
func TestGoesBackBeforeChecks(t *testing.T) {
	t.Parallel()
	for _, dieAt := range []string{"", "before boots", "after boots", "before confirm", "after confirm", "before pass", "after pass"} {
		t.Run("killed "+dieAt, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.checked("", nil)
				r.upgradeUnderChecks()
				r.boot()
				calls := &callList{}
				r.change = func(o *Options) {
					o.Strategy = wentBack{bootSpy{r.host, r.host, calls, nil}}
					o.Checks = afterHost{calls: calls}
				}
				r.dieAt, r.visit = dieAt, r.visits[dieAt]+1
				r.idle()
				got := r.check(0)
				if got.OK || !strings.Contains(got.Text, "does not run any more what it was upgraded to") {
					t.Errorf("the outcome is %+v", got)
				}
				if known := r.boots(); !slices.Contains(calls.list(), "confirm 6.1.0 not 6.1.1") || len(known.Rejected) != 1 || known.Rejected[0].Version != "6.1.1" || slices.Contains(installed(known.Trial), "6.1.1") {
					t.Errorf("the calls are %q; the boots are %+v", calls.list(), known)
				}
			})
		})
	}
}

// installed returns the versions of a trial, if there is one.
func installed(t *decide.Trial) []string {
	if t == nil {
		return nil
	}
	return t.Versions
}

// TestTakenOverBeforeChecks checks that a worker which takes over between the upgrade and its
// checks confirms nothing before these have passed, although it has not carried out the
// upgrade. After the run it does: it may never hear how that came out.
func TestTakenOverBeforeChecks(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.checked("no web", nil)
		r.upgradeUnderChecks()
		back := r.otherWorker(func(*Options) {})
		r.idle()
		if got := r.check(0); got.OK || slices.ContainsFunc(calls.list(), isConfirmed) {
			t.Errorf("the outcome is %+v, the calls are %q", got, calls.list())
		}
		back()
		calls = r.checked("", nil)
		r.otherWorker(func(*Options) {})
		if got := r.check(1); !got.OK || !slices.ContainsFunc(calls.list(), isConfirmed) {
			t.Errorf("the outcome is %+v, the calls are %q", got, calls.list())
		}
		r.boot()
		time.Sleep(2 * time.Hour)
		calls.clear()
		r.idle()
		if !slices.ContainsFunc(calls.list(), isConfirmed) {
			t.Errorf("after the run the calls are %q", calls.list())
		}
	})
}

// TestPassIsSettledAtOnce checks that the loop settles checks at once when they have passed:
// whatever else it was woken by meanwhile.
func TestPassIsSettledAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.checked("", nil)
		r.upgradeUnderChecks()
		for attempt := range 100 {
			r.starts = 0
			began := time.Now()
			if got := r.check(attempt); !got.OK || time.Since(began) > time.Second {
				t.Fatalf("attempt %d: the outcome is %+v after %s", attempt, got, time.Since(began))
			}
		}
	})
}

// slowBoot is a host that takes long to say which system has started, while it is slow.
type slowBoot struct {
	bootSpy
	slow *atomic.Bool
}

func (h slowBoot) Booted(ctx context.Context) (strategy.Boot, error) {
	if h.slow.Load() {
		if err := wait.Sleep(ctx, 50*time.Second); err != nil {
			return strategy.Boot{}, err
		}
	}
	return h.bootSpy.Booted(ctx)
}

// passingOnce are checks that pass the first time.
type passingOnce struct {
	afterHost
	passed *atomic.Bool
}

func (c passingOnce) Run(ctx context.Context, t message.Task) message.Outcome {
	if c.passed.Swap(true) {
		c.fails = "no web"
	}
	return c.afterHost.Run(ctx, t)
}

// TestPassNobodyWaitsFor checks that checks which have passed confirm nothing once nobody
// waits for their outcome, because the loop was slow: the site has them run again, and hears
// how they come out then.
func TestPassNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	for name, slowFrom := range map[string]string{"before they are settled": "after lease", "while they are settled": "before pass"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				calls := r.checked("", nil)
				r.upgradeUnderChecks()
				host := slowBoot{bootSpy{r.host, r.host, calls, nil}, &atomic.Bool{}}
				r.change = func(o *Options) {
					o.Strategy = host
					o.At = func(label string) {
						if label == slowFrom {
							host.slow.Store(true)
						}
					}
					o.Checks = passingOnce{afterHost{calls: calls}, &atomic.Bool{}}
				}
				r.hostLog.ask(message.Task{Run: 10, Kind: message.AfterHost, Host: "h01"})
				r.idleFor(10 * time.Minute)
				if got := r.check(0); got.OK || got.Text != "no web" || slices.ContainsFunc(calls.list(), isConfirmed) {
					t.Errorf("the outcome is %+v, and the calls are %q", got, calls.list())
				}
			})
		})
	}
}
