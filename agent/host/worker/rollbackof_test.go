package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/simulated"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// begins has the site send the prepare of a run, which may roll others back.
func (r *rig) begins(run uint64, rollsBack string) { r.beginsFor(time.Hour, run, rollsBack) }

// beginsFor has the site send the prepare of a run that lasts so long.
func (r *rig) beginsFor(lasts time.Duration, run uint64, rollsBack string) {
	r.hostLog.mu.Lock()
	r.hostLog.commands, r.hostLog.replies, r.hostLog.answered, r.starts = nil, nil, map[string]bool{}, 0
	r.hostLog.mu.Unlock()
	c := message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(lasts)}
	r.hostLog.send(message.Record{Seq: run, Time: time.Now(), Kind: message.CommandAll, Checks: r.checks, Release: r.release, Rollback: rollsBack, Body: c.Encode()})
}

// asks has the site send the upgrade or the reboot of a run.
func (r *rig) asks(run uint64, action message.Action) {
	seq := run + 1
	if action == message.Reboot {
		seq++
	}
	c := message.Command{Action: action, Host: "h01"}
	r.hostLog.send(message.Record{Seq: seq, Kind: message.CommandHost, Run: run, Checks: r.checks, Body: c.Encode()})
}

// passes plays a run that goes well, with its reboot.
func (r *rig) passes(run uint64, rollsBack string) {
	r.t.Helper()
	r.begins(run, rollsBack)
	expect(r, message.Prepare, message.Done)
	r.asks(run, message.Upgrade)
	expect(r, message.Upgrade, message.RebootRequired)
	r.asks(run, message.Reboot)
	expect(r, message.Reboot, message.Done)
}

// runs checks which versions run.
func (r *rig) runs(base, kernel string) {
	r.t.Helper()
	has, err := r.host.Versions(r.t.Context())
	if want := map[string]string{"base-os": base, "kernel": kernel}; err != nil || !maps.Equal(has, want) {
		r.t.Errorf("the host has %v, %v; want %v", has, err, want)
	}
}

func (r *rig) kept() *decide.Kept {
	r.t.Helper()
	k, err := readKept(r.options().Dir)
	if err != nil || k == nil {
		r.t.Fatalf("kept is %v, %v", k, err)
	}
	return k
}

// TestRollbackOf rolls back a run, rolls that back, and so on: a host goes to and fro between what it
// had before and after.
func TestRollbackOf(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.bear()
		r.passes(10, "")
		r.runs("1.1", "6.1.1")
		r.passes(20, "10-10")
		r.runs("1.0", "6.1.0")
		r.passes(30, "20-20")
		r.runs("1.1", "6.1.1")
		r.passes(40, "30-30")
		r.runs("1.0", "6.1.0")
		if upgrades, back := r.effects("upgrade"), r.effects("rollback"); upgrades != 1 || back != 3 {
			t.Errorf("it was upgraded %d times, and rolled back %d times", upgrades, back)
		}
	})
}

// TestRollbackOfSeveral rolls back several runs at once: the host has what it had before the oldest.
func TestRollbackOfSeveral(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.bear()
		r.passes(10, "")
		r.passes(20, "")
		r.passes(30, "")
		r.runs("1.3", "6.1.3")
		r.passes(40, "15-30")
		r.runs("1.1", "6.1.1")
	})
}

// TestRollbackOfRefused checks which runs a host does not roll back: its prepare fails, and it is as it
// was.
func TestRollbackOfRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(r *rig)
		back   string
		want   string
	}{
		"a run that is not the last": {func(r *rig) { r.passes(10, ""); r.passes(20, "") }, "10-10", "run 10 cannot be rolled back: the last run that has changed this host is run 20"},
		"a run of other hosts":       {func(r *rig) { r.passes(10, "") }, "11-15", "runs 11 to 15 cannot be rolled back: the last run that has changed this host is run 10"},
		"none was before":            {func(*rig) {}, "10-10", "run 10 cannot be rolled back: this host keeps no run that has changed it"},
		"a strategy without a way back": {func(r *rig) {
			r.passes(10, "")
			r.change = func(o *Options) { o.Strategy = noReleases{o.Strategy} }
		}, "10-10", "this strategy has no rollback"},
		"prepare fails": {func(r *rig) {
			r.passes(10, "")
			if err := r.host.SetFaults(map[string]string{"prepare": "fail-repository: b_1.0 is gone"}); err != nil {
				r.t.Fatal(err)
			}
		}, "10-10", "b_1.0 is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.bear()
				c.before(r)
				before, err := r.host.Versions(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				r.begins(50, c.back)
				if got := r.until(message.Prepare); got != c.want {
					t.Errorf("it answers %q, not %q", got, c.want)
				}
				r.runs(before["base-os"], before["kernel"])
				if n := r.effects("rollback"); n != 0 {
					t.Errorf("it was rolled back %d times", n)
				}
			})
		})
	}
}

// TestKeptRunStays checks that a run which changes nothing leaves the run before it to be rolled back.
func TestKeptRunStays(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.pin(ofImage())
		r.bear()
		r.passes(10, "")
		r.begins(20, "")
		expect(r, message.Prepare, message.Done)
		r.asks(20, message.Upgrade)
		expect(r, message.Upgrade, message.Done)
		if newest := r.kept().Runs[0]; newest.Run != 10 || !newest.Done || newest.Release == nil || newest.Release.Name != "spring" {
			t.Fatalf("the newest run is %+v", newest)
		}
		r.release = ""
		r.passes(30, "10-20")
		r.runs("1.0", "6.1.0")
	})
}

// TestRolledBackAlready checks that a host which has nothing of a run says so, and that nothing is undone.
func TestRolledBackAlready(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.bear()
		r.passes(10, "")
		r.passes(20, "10-10")
		r.begins(30, "10-10")
		expect(r, message.Prepare, message.Done)
		r.asks(30, message.Upgrade)
		expect(r, message.Upgrade, message.Done)
		r.runs("1.0", "6.1.0")
		if n := r.effects("rollback"); n != 1 || !r.journal().Result.UpToDate {
			t.Errorf("it was rolled back %d times, and says %+v", n, r.journal().Result)
		}
	})
}

// scripted is a host whose scripts make no plan and count how often they roll back.
type scripted struct {
	planless
	asked, back *int
	fails       *error
}

func (s scripted) PrepareRollback(context.Context, strategy.Job) (message.ChangeSet, error) {
	*s.asked++
	return message.ChangeSet{}, nil
}

func (s scripted) Rollback(context.Context, strategy.Job) (strategy.Outcome, error) {
	*s.back++
	return strategy.Done, *s.fails
}

// TestRolledBackWithoutPlan checks that scripts which make no plan roll back again after a rollback that has
// failed, and no more after one that is done.
func TestRolledBackWithoutPlan(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		var asked, back int
		var fails error
		r.change = func(o *Options) { o.Strategy = scripted{planless{o.Strategy}, &asked, &back, &fails} }
		r.bear()
		r.begins(10, "")
		expect(r, message.Prepare, message.Done)
		r.asks(10, message.Upgrade)
		expect(r, message.Upgrade, message.Done)
		for _, c := range []struct {
			run   uint64
			fails error
			want  int
		}{{20, errors.New("no way"), 1}, {30, nil, 2}, {40, nil, 2}} {
			fails = c.fails
			r.begins(c.run, "10-10")
			expect(r, message.Prepare, message.Done)
			r.asks(c.run, message.Upgrade)
			if answer := r.until(message.Upgrade); (answer == string(message.Done)) != (c.fails == nil) {
				t.Errorf("run %d: it answers %q", c.run, answer)
			}
			if back != c.want || asked != c.want {
				t.Errorf("run %d: it was asked %d times and rolled back %d times, want %d", c.run, asked, back, c.want)
			}
		}
	})
}

// TestRollbackOfCrash kills the worker at each visit of each label of a rollback: the host goes back
// once, reboots once for it, and has what it had before.
func TestRollbackOfCrash(t *testing.T) {
	t.Parallel()
	rollBack := func(r *rig, label string, visit int) (reached bool) {
		r.bear()
		r.passes(10, "")
		r.dieAt, r.visit, r.visits = label, visit, map[string]int{}
		r.passes(20, "10-10")
		r.runs("1.0", "6.1.0")
		if back, boots := r.effects("rollback"), r.effects("boot"); back != 1 || boots != 2 {
			r.t.Errorf("it went back %d times, and booted %d times", back, boots)
		}
		return r.visits[label] >= visit
	}
	var calm *rig
	inBubble(t, func(r *rig) { calm = r; rollBack(r, "", 0) })
	cells := 0
	for label, visits := range calm.visits {
		for visit := range visits {
			cells++
			t.Run(label, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(r *rig) {
					if !rollBack(r, label, visit+1) {
						t.Error("nothing was killed")
					}
				})
			})
		}
	}
	if cells < 40 {
		t.Errorf("only %d places to be killed at", cells)
	}
}

// TestRollbackOfFails checks what a host answers whose rollback goes wrong. It is not undone once more.
func TestRollbackOfFails(t *testing.T) {
	t.Parallel()
	const stays = "; the host stays as it is now: mend it, then roll back again, or start a run that upgrades it"
	for name, c := range map[string]struct {
		faults  map[string]string
		action  message.Action
		want    string
		outcome message.ReplyOutcome
		base    string
		kernel  string
	}{
		"it fails":                       {map[string]string{"rollback": "fail-install: no way"}, message.Upgrade, "no way" + stays, message.Failed, "1.1", "6.1.1"},
		"the machine gives the old up":   {map[string]string{"reboot": "fall-back"}, message.Reboot, "the machine started 6.1.0, gave it up and went back to 6.1.1 by itself; rolled back", message.RolledBack, "1.1", "6.1.1"},
		"it crashes before its effect":   {map[string]string{"rollback": "crash-before"}, message.Upgrade, "reboot-required", message.RebootRequired, "1.0", "6.1.1"},
		"it crashes after its effect":    {map[string]string{"rollback": "crash-after"}, message.Upgrade, "reboot-required", message.RebootRequired, "1.0", "6.1.1"},
		"upgrade and resume do not come": {map[string]string{"upgrade": "fail: A", "resume": "fail: B", "verify": "fail: C"}, message.Upgrade, "reboot-required", message.RebootRequired, "1.0", "6.1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.bear()
				r.passes(10, "")
				if err := r.host.SetFaults(c.faults); err != nil {
					t.Fatal(err)
				}
				r.begins(20, "10-10")
				expect(r, message.Prepare, message.Done)
				r.asks(20, message.Upgrade)
				got := r.until(message.Upgrade)
				if c.action == message.Reboot {
					r.asks(20, message.Reboot)
					got = r.until(message.Reboot)
				}
				if got != c.want || r.hostLog.outcome(c.action) != c.outcome {
					t.Errorf("it answers %q, %s; want %q, %s", got, r.hostLog.outcome(c.action), c.want, c.outcome)
				}
				r.runs(c.base, c.kernel)
			})
		})
	}
}

// TestRollbackOfGoesOn checks that a rollback which has failed goes on with the next one of the same run, or
// with one of its own that goes forward again.
func TestRollbackOfGoesOn(t *testing.T) {
	t.Parallel()
	for back, want := range map[string][2]string{"10-10": {"1.0", "6.1.0"}, "20-20": {"1.1", "6.1.1"}} {
		inBubble(t, func(r *rig) {
			r.bear()
			r.passes(10, "")
			if err := r.host.SetFaults(map[string]string{"reboot": "fail: a user is logged in"}); err != nil {
				t.Fatal(err)
			}
			r.begins(20, "10-10")
			expect(r, message.Prepare, message.Done)
			r.asks(20, message.Upgrade)
			expect(r, message.Upgrade, message.RebootRequired)
			r.asks(20, message.Reboot)
			expect(r, message.Reboot, "cannot reboot: a user is logged in")
			if err := r.host.SetFaults(nil); err != nil {
				t.Fatal(err)
			}
			r.begins(30, back)
			expect(r, message.Prepare, message.Done)
			r.asks(30, message.Upgrade)
			if answer := r.until(message.Upgrade); answer == string(message.RebootRequired) {
				r.asks(30, message.Reboot)
				expect(r, message.Reboot, message.Done)
			} else if answer != string(message.Done) {
				t.Errorf("it answers %q", answer)
			}
			r.runs(want[0], want[1])
		})
	}
}

// halfway is a host whose rollback says that it is done, or that it takes a reboot, and leaves a package as it
// is.
type halfway struct {
	*simulated.Host
	says strategy.Outcome
}

func (h halfway) Rollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	var plan []message.Change
	for _, c := range job.Plan.Changes {
		if c.Name == "kernel" {
			plan = append(plan, c)
		}
	}
	job.Plan.Changes = plan
	_, err := h.Host.Rollback(ctx, job)
	return h.says, err
}

// TestRollbackIsProved checks that a host is done only if it has what it had before, whatever its
// strategy says.
func TestRollbackIsProved(t *testing.T) {
	t.Parallel()
	for says, want := range map[strategy.Outcome]string{
		strategy.RebootRequired: "1 of 2 changes of the plan are missing: base-os 1.0 (it is 1.1)",
		strategy.Done:           "2 of 2 changes of the plan are missing: base-os 1.0 (it is 1.1), kernel 6.1.0 (it is 6.1.1)",
	} {
		inBubble(t, func(r *rig) {
			r.bear()
			r.passes(10, "")
			r.change = func(o *Options) { o.Strategy = halfway{r.host, says} }
			r.begins(20, "10-10")
			expect(r, message.Prepare, message.Done)
			r.asks(20, message.Upgrade)
			if got := r.until(message.Upgrade); !strings.HasPrefix(got, want) || r.hostLog.outcome(message.Upgrade) != message.Failed {
				t.Errorf("it answers %q, %s; want %q", got, r.hostLog.outcome(message.Upgrade), want)
			}
		})
	}
}

// jobs are the jobs that a strategy got to undo.
type jobs struct {
	*simulated.Host
	got *[]string
}

func (j jobs) PrepareRollback(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	*j.got = append(*j.got, undoes(job))
	return j.Host.PrepareRollback(ctx, job)
}

func (j jobs) Rollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	*j.got = append(*j.got, undoes(job))
	return j.Host.Rollback(ctx, job)
}

func undoes(job strategy.Job) string {
	name := func(r *release.Release) string {
		if r == nil {
			return "none"
		}
		return r.Version
	}
	return fmt.Sprintf("%d: %v, %s, was %s", job.RollbackOf, message.ChangeTexts(job.Plan.Changes), name(job.Release), name(job.Was))
}

// TestRollbackOfJob checks what a strategy is told: the same for each call, and both releases.
func TestRollbackOfJob(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		var got []string
		r.bear()
		first, second := ofImage(), ofImage()
		second.Version, second.Installs = "6.1.10", map[string]string{"kernel": "6.1.10"}
		r.pin(first)
		r.passes(10, "")
		r.pin(second)
		r.passes(20, "")
		r.release = ""
		r.change = func(o *Options) { o.Strategy = jobs{r.host, &got} }
		r.passes(30, "20-20")
		r.passes(40, "30-30")
		forward, back := "20: [kernel 6.1.9 → 6.1.10], 6.1.10, was 6.1.9", "30: [kernel 6.1.10 → 6.1.9], 6.1.9, was 6.1.10"
		if want := []string{forward, forward, forward, back, back, back}; strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the strategy is told\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestRolledBackIsHeldBack checks that the next run without a release does not install again what was
// rolled back, and that one with a release does.
func TestRolledBackIsHeldBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.bear()
		r.passes(10, "")
		r.passes(20, "10-10")
		r.begins(30, "")
		expect(r, message.Prepare, message.Done)
		r.asks(30, message.Upgrade)
		expect(r, message.Upgrade, message.Done)
		r.runs("1.0", "6.1.0")
		installs := ofImage()
		installs.Installs = map[string]string{"kernel": "6.1.1"}
		r.pin(installs)
		r.passes(40, "")
		r.runs("1.0", "6.1.1")
	})
}

// TestOldSystemOnTrial checks that the old system is confirmed as that of any run: once its checks have
// passed, and not as one that the machine went back to by itself.
func TestOldSystemOnTrial(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.bear()
		r.passes(10, "")
		r.checks = true
		calls := &callList{}
		r.change = func(o *Options) { o.Strategy = confirming{r.host, calls} }
		r.passes(20, "10-10")
		if got := calls.list(); len(got) != 0 {
			t.Errorf("before the checks it %v", got)
		}
		r.hostLog.ask(message.Task{Run: 20, Kind: message.AfterHost, Host: "h01"})
		for r.life(func() bool { return len(r.hostLog.wanted()) == 0 }) {
		}
		if got := calls.list(); len(got) != 1 || got[0] != "confirm 6.1.0" {
			t.Errorf("it %v", got)
		}
		if rejected := r.hostLog.last.RolledBack; len(rejected) != 0 {
			t.Errorf("it tells %v", rejected)
		}
	})
}

// confirming notes what is confirmed.
type confirming struct {
	*simulated.Host
	calls *callList
}

func (c confirming) Confirm(ctx context.Context, boot strategy.Boot) error {
	c.calls.add(strings.TrimSpace("confirm " + boot.Running + " " + boot.Failed))
	return c.Host.Confirm(ctx, boot)
}

// TestDamagedKept checks that a worker does not start over what it cannot read, and says what that
// costs.
func TestDamagedKept(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.bear()
		r.passes(10, "")
		o := r.options()
		if err := durable.WriteFile(filepath.Join(o.Dir, keptFile), []byte(`{"format":1,"kept":{},"sum":""}`), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "remove it, and no run until now can be rolled back on this host") {
			t.Errorf("the error is %v", errors.Unwrap(err))
		}
	})
}
