package worker

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
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
		again := r.boots().commanded(true, []string{"6.1.1"}, time.Now())
		if !again.onTrial(strategy.Boot{Running: "6.1.1"}, time.Now()) || again.Trial.Since.IsZero() {
			t.Errorf("a later upgrade leaves %+v", again.Trial)
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
				if known := r.boots(); !slices.Contains(calls.list(), "confirm 6.1.0 not 6.1.1") || len(known.Rejected) != 1 || known.Rejected[0].Version != "6.1.1" || slices.Contains(known.Trial.installed(), "6.1.1") {
					t.Errorf("the calls are %q; the boots are %+v", calls.list(), known)
				}
			})
		})
	}
}

// installed returns the versions of a trial, if there is one.
func (t *trial) installed() []string {
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

// TestTrial checks the rules of a trial.
func TestTrial(t *testing.T) {
	t.Parallel()
	now := time.Now()
	runs := func(version string) strategy.Boot { return strategy.Boot{Running: version} }
	install := func(b boots, versions ...string) boots { return b.commanded(true, versions, now) }
	for name, c := range map[string]struct {
		after boots
		boot  strategy.Boot
		want  bool
	}{
		"no run has checks":                  {boots{}.commanded(false, []string{"2"}, now), runs("2"), false},
		"the run has checks":                 {install(boots{}, "2"), runs("2"), true},
		"the old system runs":                {install(boots{}, "2"), runs("1"), false},
		"the machine went back to it":        {install(boots{}, "2"), strategy.Boot{Running: "2", Failed: "3"}, false},
		"the host does not tell what runs":   {install(boots{}, "2"), strategy.Boot{}, false},
		"the next run has checks":            {install(boots{}, "2").commanded(true, nil, now), runs("2"), true},
		"the next run has none":              {install(boots{}, "2").commanded(false, nil, now), runs("2"), false},
		"the next run installs another":      {install(install(boots{}, "2"), "3"), runs("2"), true},
		"they passed":                        {install(boots{}, "2").endTrial(message.Task{Run: 1}), runs("2"), false},
		"they passed, and the next prepares": {install(boots{}, "2").endTrial(message.Task{Run: 1}).commanded(true, nil, now), runs("2"), false},
		"they passed before the next":        {install(install(boots{}, "2").endTrial(message.Task{Run: 1}), "3"), runs("2"), false},
		"it was given up":                    {install(boots{}, "2", "3").reject(Rejected{Version: "2"}), runs("2"), false},
		"the other one was given up":         {install(boots{}, "2", "3").reject(Rejected{Version: "2"}), runs("3"), true},
		"another worker has installed it":    {boots{}.takenOver(now.Add(1)), runs("2"), true},
		"that run is over":                   {boots{}.takenOver(now), runs("2"), false},
		"another worker, in no run":          {install(boots{}, "2").takenOver(time.Time{}), runs("2"), false},
		"it gave up what another installed":  {boots{}.takenOver(now.Add(1)).reject(Rejected{Version: "2"}), runs("1"), false},
	} {
		if got := c.after.onTrial(c.boot, now); got != c.want {
			t.Errorf("%s: %+v is on trial: %t, with %+v", name, c.boot, got, c.after.Trial)
		}
	}
	task := message.Task{Run: 1, Kind: message.AfterHost}
	if ended := install(boots{}, "2").endTrial(task); !ended.passedIn(task) || ended.commanded(true, nil, now).passedIn(task) {
		t.Errorf("the next run knows of passed checks: %+v", ended.commanded(true, nil, now).Trial)
	}
	many := boots{}
	for range maxOnTrial + 10 {
		many = install(many, time.Now().String())
	}
	if n := len(many.Trial.Versions); n > maxOnTrial+1 {
		t.Errorf("%d versions are remembered", n)
	}
}

// TestPassBeforeAnUpgrade checks that checks which began before an upgrade was accepted (seed
// 3002183), or while it was not done, say nothing of what it has installed when they are settled
// after it, and that those which began after it do.
func TestPassBeforeAnUpgrade(t *testing.T) {
	t.Parallel()
	upgraded := Journal{Log: "log", Seq: 12, Action: message.Upgrade, Phase: Answering}
	for what, c := range map[string]struct {
		began Journal
		told  bool
	}{
		"before it":       {Journal{Log: "log", Seq: 10, Action: message.Upgrade, Phase: Answered}, false},
		"on another log":  {Journal{Log: "other", Seq: 12, Action: message.Upgrade, Phase: Answered}, false},
		"while deferred":  {Journal{Log: "log", Seq: 12, Action: message.Upgrade, Phase: Deferred}, false},
		"in the upgrade":  {Journal{Log: "log", Seq: 12, Action: message.Upgrade, Phase: Upgrading}, false},
		"in its rollback": {Journal{Log: "log", Seq: 12, Action: message.Upgrade, Phase: RollingBack}, false},
		"after it":        {upgraded, true},
	} {
		w := &Worker{journal: upgraded, Options: Options{Strategy: oneSystem{}, At: func(string) {}}}
		p := pass{message.Task{Kind: message.AfterHost}, c.began, make(chan message.Outcome, 1)}
		if err := w.settle(t.Context(), p); err != nil || len(p.done) > 0 != c.told {
			t.Errorf("checks that began %s: the site is told %t, %v", what, len(p.done) > 0, err)
		}
	}
}

// oneSystem is a strategy whose hosts have one bootable system.
type oneSystem struct{ strategy.Strategy }
