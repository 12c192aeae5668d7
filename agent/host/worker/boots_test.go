package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// bootSpy notes what is called of a strategy with more than one system.
type bootSpy struct {
	strategy.Strategy
	strategy.Confirmer
	calls *callList
	// fails makes Confirm fail.
	fails error
}

// callList are calls of the loop and of the tasks beside it.
type callList struct {
	mu  sync.Mutex
	all []string
}

func (l *callList) add(call string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, call)
}

func (l *callList) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

func (l *callList) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = nil
}

func (b bootSpy) Confirm(ctx context.Context, boot strategy.Boot) error {
	call := "confirm " + boot.Running
	if boot.Failed != "" {
		call += " not " + boot.Failed
	}
	b.calls.add(call)
	return errors.Join(b.fails, b.Confirmer.Confirm(ctx, boot))
}

func (b bootSpy) Prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	plan, err := b.Strategy.Prepare(ctx, job)
	b.calls.add("prepare " + told(plan))
	return plan, err
}

func (b bootSpy) Verify(ctx context.Context, job strategy.Job) error {
	b.calls.add("verify")
	return b.Strategy.Verify(ctx, job)
}

func told(plan message.ChangeSet) string {
	var all []string
	for _, c := range plan.Changes {
		all = append(all, c.Name+" "+c.To)
	}
	for _, h := range plan.Held {
		all = append(all, h.Name+" not "+h.Offered)
	}
	return strings.Join(all, ", ")
}

// spied puts a spy between the worker and the rig's host.
func (r *rig) spied(fails error) *callList {
	calls := &callList{}
	r.change = func(o *Options) { o.Strategy = bootSpy{r.host, r.host, calls, fails} }
	return calls
}

// boot starts the machine once more, outside of any run.
func (r *rig) boot() {
	r.t.Helper()
	if err := r.host.Boot(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// idle runs a worker for a while.
func (r *rig) idle() {
	r.t.Helper()
	r.idleFor(time.Second)
}

// idleFor runs a worker for some time.
func (r *rig) idleFor(d time.Duration) {
	r.t.Helper()
	until := time.Now().Add(d)
	for r.life(func() bool { return time.Now().After(until) }) {
	}
}

// TestEachStartIsConfirmed checks that the system which has started is confirmed after
// each start of the machine, in no run as well, and once in a boot.
func TestEachStartIsConfirmed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.spied(nil)
		for range 2 {
			r.idle()
			r.idle()
			r.boot()
		}
		r.idle()
		if want := []string{"confirm 6.1.0", "confirm 6.1.0", "confirm 6.1.0"}; !slices.Equal(calls.list(), want) {
			t.Errorf("the calls are %q, not %q", calls.list(), want)
		}
	})
}

// TestConfirmFails checks that a system which cannot be confirmed outside of a run holds
// nothing up, and is confirmed when the worker starts again.
func TestConfirmFails(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.spied(errors.New("no boot loader"))
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		if n := r.log.lines("cannot confirm the system that has started", "no boot loader"); n == 0 || len(calls.list()) < 2 {
			t.Errorf("it is told %d times; the calls are %q", n, calls.list())
		}
		r.spied(nil)
		r.idle()
		if known := r.boots(); known.Judged == "" {
			t.Error("it is not confirmed later")
		}
	})
}

// boots returns what the worker has recorded about the starts.
func (r *rig) boots() decide.Boots {
	r.t.Helper()
	known, err := readBoots(filepath.Join(r.dir, "state"))
	if err != nil {
		r.t.Fatal(err)
	}
	return known
}

// TestUpgradeIsConfirmedAfterVerify checks that the upgraded system is confirmed after
// its checks and before the reply, wherever the worker is killed. An upgrade that cannot
// be confirmed is not done, because the next reboot would undo it.
func TestUpgradeIsConfirmedAfterVerify(t *testing.T) {
	t.Parallel()
	for _, dieAt := range []string{"", "before booted", "after booted", "before verify", "after verify", "before boots", "after boots"} {
		t.Run("killed "+dieAt, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				calls := r.spied(nil)
				r.bear()
				r.prepare()
				expect(r, message.Prepare, message.Done)
				r.command(11, message.Upgrade)
				expect(r, message.Upgrade, message.RebootRequired)
				calls.clear()
				r.dieAt, r.visit = dieAt, r.visits[dieAt]+1
				r.command(12, message.Reboot)
				expect(r, message.Reboot, message.Done)
				got := slices.Compact(calls.list())
				want := []string{"verify", "confirm 6.1.1"}
				if dieAt == "after verify" || dieAt == "before boots" || dieAt == "after boots" {
					got = got[:2]
				}
				if !slices.Equal(got, want) {
					t.Errorf("the calls are %q, not %q", got, want)
				}
			})
		})
	}
	inBubble(t, func(r *rig) {
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
		r.spied(errors.New("no boot loader"))
		r.command(12, message.Reboot)
		expect(r, message.Reboot, "cannot confirm that 6.1.1 runs: no boot loader; rolled back")
	})
}

// TestMachineFallsBack checks a host whose machine gave up the upgraded system: its
// reply names both versions, its heartbeats tell it, and the version is not offered
// again until it changes or somebody accepts it.
func TestMachineFallsBack(t *testing.T) {
	t.Parallel()
	for _, dieAt := range []string{"", "before booted", "before verify", "after verify", "before boots", "after boots", "before confirm", "after confirm", "before reply"} {
		t.Run("killed "+dieAt, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				calls := r.spied(nil)
				r.bear()
				r.prepare()
				expect(r, message.Prepare, message.Done)
				if err := r.host.SetFaults(map[string]string{"reboot": "fall-back"}); err != nil {
					t.Fatal(err)
				}
				r.command(11, message.Upgrade)
				expect(r, message.Upgrade, message.RebootRequired)
				calls.clear()
				r.dieAt, r.visit = dieAt, r.visits[dieAt]+1
				r.command(12, message.Reboot)
				expect(r, message.Reboot, "the machine started 6.1.1, gave it up and went back to 6.1.0 by itself; rolled back")
				if got := r.hostLog.replies[2].Result.Class; got != message.Boot {
					t.Errorf("the class is %q", got)
				}
				r.idle()
				if !slices.Contains(calls.list(), "confirm 6.1.0 not 6.1.1") || slices.Contains(calls.list(), "verify") {
					t.Errorf("the calls are %q", calls.list())
				}
				if told := r.hostLog.last.RolledBack; len(told) != 1 || told[0].Version != "6.1.1" || told[0].Running != "6.1.0" {
					t.Errorf("heartbeats tell of %v", told)
				}
				want := []decide.Rejected{{Name: "kernel", Version: "6.1.1", Running: "6.1.0"}}
				got := r.boots().Rejected
				for i := range got {
					got[i].At = time.Time{}
				}
				if !slices.Equal(got, want) {
					t.Errorf("rejected are %+v", got)
				}
			})
		})
	}
}

// fallBack leaves a host in mid-run whose upgrade ended in a reboot that fell back: its
// worker was killed at a label, in a phase, before it knew.
func (r *rig) fallBack(dieAt string, in decide.Phase) {
	r.t.Helper()
	r.bear()
	r.prepare()
	expect(r, message.Prepare, message.Done)
	if err := r.host.SetFaults(map[string]string{"reboot": "fall-back"}); err != nil {
		r.t.Fatal(err)
	}
	r.dieAt, r.visit = dieAt, r.visits[dieAt]+1
	r.command(11, message.Upgrade)
	r.life(func() bool { return false })
	if phase := r.journal().Phase; phase != in {
		r.t.Fatalf("the worker was killed in phase %s", phase)
	}
	r.boot()
}

// TestUpgradeThatRebootsFallsBack checks that an upgrade whose own reboot ends in the system
// before it is not begun again, and is not said to take a reboot: the machine has given its
// version up.
func TestUpgradeThatRebootsFallsBack(t *testing.T) {
	t.Parallel()
	for dieAt, in := range map[string]decide.Phase{"after upgrade": decide.Upgrading, "before reply": decide.Answering} {
		t.Run("killed "+dieAt, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				calls := r.spied(nil)
				r.fallBack(dieAt, in)
				expect(r, message.Upgrade, "the machine started 6.1.1, gave it up and went back to 6.1.0 by itself; rolled back")
				if got := r.hostLog.replies[1].Result.Class; got != message.Boot {
					t.Errorf("the class is %q", got)
				}
				r.idle()
				if n := r.effects("upgrade"); n != 1 || !slices.Contains(calls.list(), "confirm 6.1.0 not 6.1.1") {
					t.Errorf("it was upgraded %d times; the calls are %q", n, calls.list())
				}
			})
		})
	}
}

// otherWorker has the next workers be another one of the same machine, without the lease or
// without the site, until the returned function is called.
func (r *rig) otherWorker(change func(*Options)) (back func()) {
	before := r.change
	r.change = func(o *Options) {
		before(o)
		o.Dir = filepath.Join(r.dir, "other")
		change(o)
	}
	return func() { r.change = before }
}

// TestStandbyConfirmsNothing checks that a worker which may not be the one of its host has
// the machine forget nothing: the worker that has the upgrade in hand could not find out any
// more that the machine gave it up, and would install it again.
func TestStandbyConfirmsNothing(t *testing.T) {
	t.Parallel()
	taken := new(atomic.Bool)
	taken.Store(true)
	for name, change := range map[string]func(*rig, *Options){
		"another worker has the lease": func(r *rig, o *Options) { o.HostLog = guarded{r.hostLog, taken} },
		"the site is not connected":    func(_ *rig, o *Options) { o.HostLog = unreachable() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				calls := r.spied(nil)
				r.fallBack("after upgrade", decide.Upgrading)
				calls.clear()
				back := r.otherWorker(func(o *Options) { change(r, o) })
				r.idleFor(20 * time.Minute)
				if len(calls.list()) > 0 {
					t.Errorf("the calls are %q", calls.list())
				}
				back()
				expect(r, message.Upgrade, "the machine started 6.1.1, gave it up and went back to 6.1.0 by itself; rolled back")
				if n := r.effects("upgrade"); n != 1 {
					t.Errorf("it was upgraded %d times", n)
				}
			})
		})
	}
}

// unreachable is the log of a site that is not connected.
func unreachable() *fakeLog {
	cut := newFakeLog()
	for _, call := range []string{"lease", "newest", "commands", "reply"} {
		cut.slow[call] = true
	}
	return cut
}

// TestFailureOfAnotherIsKept checks a worker without its site, whose machine gave up what
// this worker did not install: it marks the system that runs as good, so that it starts
// again, and has the failed one forgotten when it knows that it is the host's worker.
func TestFailureOfAnotherIsKept(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.spied(nil)
		back := r.otherWorker(func(*Options) {})
		r.idle() // It has had the lease.
		connected := r.change
		back()
		r.fallBack("after upgrade", decide.Upgrading)
		calls.clear()
		r.change = func(o *Options) { connected(o); o.HostLog = unreachable() }
		r.idleFor(20 * time.Minute)
		if want := []string{"confirm 6.1.0"}; !slices.Equal(calls.list(), want) {
			t.Errorf("without the site the calls are %q, not %q", calls.list(), want)
		}
		r.change = connected
		r.idle()
		got, want := calls.list(), []string{"confirm 6.1.0", "confirm 6.1.0 not 6.1.1"}
		if !slices.Equal(got[:min(2, len(got))], want) {
			t.Errorf("the calls are %q, not %q", got, want)
		}
	})
}

// TestRejectedVersion checks that the version that the machine gave up is held back in
// the next run, and offered again once somebody accepts it.
func TestRejectedVersion(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.spied(nil)
		r.bear()
		dir := filepath.Join(r.dir, "state")
		known := decide.Boots{Rejected: []decide.Rejected{{Name: "kernel", Version: "6.1.1", Running: "6.1.0", At: time.Now()}}}
		known.Judged, _ = r.host.BootID()
		if err := writeKept(dir, known); err != nil {
			t.Fatal(err)
		}
		prepare := func(seq uint64, want string) {
			t.Helper()
			time.Sleep(time.Second)
			calls.clear()
			r.hostLog.forget()
			c := message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(time.Hour)}
			r.hostLog.send(message.Record{Seq: seq, Kind: message.CommandAll, Body: c.Encode()})
			for r.life(func() bool { return r.hostLog.hasAnswered(message.Prepare) }) {
			}
			if !slices.Contains(calls.list(), want) {
				t.Errorf("the calls are %q, not %q", calls.list(), want)
			}
		}
		prepare(20, "prepare base-os 1.1, kernel not 6.1.1")
		if _, err := Accept(dir, "6.1.2", time.Now(), durable.WriteFile); err == nil || err.Error() != `no version "6.1.2" is rejected or on trial on this host; rejected are 6.1.1` {
			t.Errorf("another version: %v", err)
		}
		if got, err := Accept(dir, "6.1.1", time.Now(), durable.WriteFile); err != nil || got.Name != "kernel" {
			t.Errorf("accepted is %v, %v", got, err)
		}
		prepare(30, "prepare base-os 1.1, kernel 6.1.1")
		if told := r.hostLog.last.RolledBack; len(told) != 0 {
			t.Errorf("heartbeats tell of %v", told)
		}
		if _, err := Accept(dir, "6.1.1", time.Now(), durable.WriteFile); err == nil {
			t.Error("it is accepted twice")
		}
	})
}

func writeKept(dir string, known decide.Boots) error {
	body, err := known.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, bootsFile), body, 0o600)
}

// TestUnwellSystemIsNotConfirmed checks that a system which fails its checks, and from
// which there is no way back, is not confirmed in this boot.
func TestUnwellSystemIsNotConfirmed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.spied(nil)
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		if err := r.host.SetFaults(map[string]string{"verify": "fail: no network", "rollback": "fail: no old system"}); err != nil {
			t.Fatal(err)
		}
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
		calls.clear()
		r.command(12, message.Reboot)
		expect(r, message.Reboot, "verify: no network; rollback failed: no old system")
		r.idle()
		if want := []string{"verify"}; !slices.Equal(calls.list(), want) {
			t.Errorf("the calls are %q, not %q", calls.list(), want)
		}
	})
}

// inPlace is a host on which the version of the plan runs already, and is well.
type inPlace struct{ bootSpy }

func (inPlace) Upgrade(context.Context, strategy.Job) (strategy.Outcome, error) {
	return strategy.Done, nil
}

func (inPlace) Missing(context.Context, strategy.Job) ([]message.Change, error) { return nil, nil }

func (h inPlace) Verify(context.Context, strategy.Job) error {
	h.calls.add("verify")
	return nil
}

// TestVerifiedAfterFailure checks that a system which is not confirmed, because an upgrade has
// failed on it, is confirmed when the next run verifies it in the same boot: the next start
// of the machine would undo what that run has answered.
func TestVerifiedAfterFailure(t *testing.T) {
	t.Parallel()
	for _, checks := range []bool{false, true} {
		t.Run(fmt.Sprintf("checks %t", checks), func(t *testing.T) {
			t.Parallel()
			verifiedAfterFailure(t, checks)
		})
	}
}

func verifiedAfterFailure(t *testing.T, checks bool) {
	t.Helper()
	inBubble(t, func(r *rig) {
		r.checks = checks
		calls := r.spied(nil)
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		if err := r.host.SetFaults(map[string]string{"verify": "fail: no network", "rollback": "fail: no old system"}); err != nil {
			t.Fatal(err)
		}
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
		r.command(12, message.Reboot)
		expect(r, message.Reboot, "verify: no network; rollback failed: no old system")
		r.change = func(o *Options) { o.Strategy = inPlace{bootSpy{r.host, r.host, calls, nil}} }
		calls.clear()
		r.hostLog.forget()
		c := message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(time.Hour)}
		r.hostLog.send(message.Record{Seq: 20, Kind: message.CommandAll, Checks: checks, Body: c.Encode()})
		expect(r, message.Prepare, message.Done)
		r.hostLog.send(message.Record{Seq: 21, Kind: message.CommandHost, Run: 20, Checks: checks, Body: message.Command{Action: message.Upgrade, Host: "h01"}.Encode()})
		expect(r, message.Upgrade, message.Done)
		if checks {
			if len(calls.list()) != 2 {
				t.Errorf("before its checks the calls are %q", calls.list())
			}
			r.hostLog.ask(message.Task{Run: 20, Kind: message.AfterHost, Host: "h01"})
			for r.life(func() bool { return len(r.hostLog.wanted()) == 0 }) {
			}
		}
		if at := slices.IndexFunc(calls.list(), func(call string) bool { return strings.HasPrefix(call, "confirm ") }); at < 0 || at < slices.Index(calls.list(), "verify") {
			t.Errorf("the calls are %q", calls.list())
		}
	})
}

// TestRejectedOnceItIsRead checks that a version which the machine gave up is held back in the next run
// though the boot loader could not be read in the run that installed it.
func TestRejectedOnceItIsRead(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.spied(nil)
		r.fallBack("after upgrade", decide.Upgrading)
		if err := r.host.SetFaults(map[string]string{"rollback": "fail: no old system"}); err != nil {
			t.Fatal(err)
		}
		r.change = func(o *Options) { o.Strategy = blind{bootSpy{r.host, r.host, calls, nil}} }
		expect(r, message.Upgrade, "cannot find out which system has started: the boot loader cannot be read; rollback failed: no old system")
		r.change = func(o *Options) { o.Strategy = bootSpy{r.host, r.host, calls, nil} }
		r.hostLog.forget()
		c := message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(time.Hour)}
		r.hostLog.send(message.Record{Seq: 20, Kind: message.CommandAll, Body: c.Encode()})
		expect(r, message.Prepare, message.Done)
		if all := calls.list(); !slices.Contains(all, "prepare base-os 1.1, kernel not 6.1.1") {
			t.Errorf("the calls are %q", all)
		}
	})
}

// blind is a host whose boot loader cannot be read.
type blind struct{ bootSpy }

func (blind) Booted(context.Context) (strategy.Boot, error) {
	return strategy.Boot{}, errors.New("the boot loader cannot be read")
}

// TestRollbackReboots checks that a host whose rollback requires a reboot reboots once,
// wherever its worker is killed, and replies after the reboot.
func TestRollbackReboots(t *testing.T) {
	t.Parallel()
	play := func(r *rig) {
		r.t.Helper()
		r.bear()
		if err := r.host.SetFaults(map[string]string{"verify": "fail: no network"}); err != nil {
			r.t.Fatal(err)
		}
		r.prepare()
		expect(r, message.Prepare, message.Done)
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
		r.command(12, message.Reboot)
		expect(r, message.Reboot, "verify: no network; rolled back")
		if n := r.effects("boot"); n != 2 {
			r.t.Errorf("the host booted %d times", n)
		}
		versions, err := r.host.Versions(context.Background())
		if err != nil || versions["kernel"] != "6.1.0" {
			r.t.Errorf("it answered that it is rolled back, and runs %v: %v", versions, err)
		}
	}
	var calm *rig
	inBubble(t, func(r *rig) { calm = r; play(r) })
	for label, visits := range calm.visits {
		for visit := range visits {
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

// reboots is a host whose rollback asks for a reboot again and again.
type reboots struct{ strategy.Strategy }

func (reboots) Rollback(context.Context, strategy.Job) (strategy.Outcome, error) {
	return strategy.RebootRequired, nil
}

// TestRollbackRebootsOnce checks that a host reboots only once to roll back, even if its
// strategy asks for another reboot, and that its reply says so when the reboot does not
// come.
func TestRollbackRebootsOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reboot, want string
		boots        int
	}{
		"it asks again":       {"", "no room; rollback failed: it asks for another reboot, and a host reboots once to roll back", 1},
		"it cannot be asked":  {"fail: a user is logged in", "no room; rollback failed: cannot reboot: a user is logged in", 0},
		"it does not go down": {"hang", "no room; rollback failed: cannot reboot: asking for it took longer than 1m0s", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.change = func(o *Options) { o.Strategy = reboots{o.Strategy} }
				faults := map[string]string{"upgrade": "fail-space: no room"}
				if c.reboot != "" {
					faults["reboot"] = c.reboot
				}
				if err := r.host.SetFaults(faults); err != nil {
					t.Fatal(err)
				}
				r.bear()
				r.prepare()
				expect(r, message.Prepare, message.Done)
				r.command(11, message.Upgrade)
				expect(r, message.Upgrade, c.want)
				if got := r.hostLog.replies[1].Result.Class; got != message.Space || r.effects("boot") != c.boots {
					t.Errorf("the class is %q after %d boots", got, r.effects("boot"))
				}
			})
		})
	}
}

// TestSoftRebootIsNoReboot checks that a machine whose user space started anew in the same
// boot has not rebooted: the boot id is what counts.
func TestSoftRebootIsNoReboot(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		calls := r.spied(nil)
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
		calls.clear()
		asked := 0
		r.change = func(o *Options) {
			o.Machine = softly{o.Machine, func() { asked++ }}
		}
		r.command(12, message.Reboot)
		if got := r.until(message.Reboot); !strings.Contains(got, "yet the host was still up") || asked != 1 {
			t.Errorf("after %d soft reboots it answered %q", asked, got)
		}
		if len(calls.list()) > 0 || r.effects("boot") != 0 {
			t.Errorf("it called %q, and booted %d times", calls.list(), r.effects("boot"))
		}
	})
}

// softly is a machine that accepts a reboot and keeps its boot id.
type softly struct {
	Machine
	asked func()
}

func (s softly) Reboot(context.Context, strategy.Job) error {
	s.asked()
	return nil
}

// TestPrintedRolledBack checks that a script which prints that the upgrade was rolled back does
// not have the failed system confirmed with the next start of the worker: the strategy has said
// that it has no rollback.
func TestPrintedRolledBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		judged string
	}{
		"the script alone": {strategy.ErrNoRollback, "boot-1"},
		"the strategy":     {nil, ""},
	} {
		j := upgradedWith("half installed; rolled back")
		j.Phase = decide.RollingBack
		next, _ := decide.State{Journal: j, Unconfirmed: decide.WholeBoot}.After(decide.Ended{Do: decide.DoRollback, Outcome: strategy.Done, Err: c.err}, "boot-1", now)
		if next.Phase != decide.Answering || next.Boots.Judged != c.judged {
			t.Errorf("%s says so: the reply is %+v, and boot %q counts as judged", name, next.Result, next.Boots.Judged)
		}
	}
}
