// Package check plays a set of scripts through the contract of strategies, kills them in
// the middle, and says what to mend. It is for people who write a strategy.
//
// It really upgrades the machine on which it runs. It decides nothing about runs: it
// calls what a worker calls, in the worker's order, and compares.
package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/exec"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Options say what is checked, and how.
type Options struct {
	// Strategy is the set of scripts or the program to check; its StateDir is a folder
	// of the check, and Started is the check's own.
	Strategy exec.Options
	// Reset is a command for sh -c that makes the machine what it was before the first
	// upgrade; without one only a single upgrade is played, and nothing is killed.
	Reset string
	// Boot is a command for sh -c in place of a reboot; the boot id changes with it.
	Boot string
	// Limit bounds each action.
	Limit time.Duration
}

// Level says how a finding counts.
type Level string

// The levels of findings.
const (
	OK   Level = "ok"
	Note Level = "note"
	Fail Level = "FAIL"
)

// Finding is what one part of the check has found.
type Finding struct {
	Level Level
	// What was checked, such as "resume after upgrade was killed in its middle".
	What string
	// Text says what was found, and for a failure what to mend.
	Text string
}

// Run checks a set of scripts. report gets each finding as it comes. It returns whether
// nothing failed; an error means that the check itself could not go on.
func Run(ctx context.Context, o Options, report func(Finding)) (ok bool, err error) {
	c := &checker{Options: o, report: report, took: map[string]time.Duration{}}
	if err := os.MkdirAll(o.Strategy.StateDir, 0o700); err != nil {
		return false, err
	}
	c.Strategy.Started = c.started
	c.Strategy.Timeouts = exec.WithLimit(o.Limit)
	if c.s, err = exec.New(c.Strategy); err != nil {
		return false, err
	}
	err = c.play(ctx)
	if errors.Is(err, errFound) {
		err = nil
	}
	return err == nil && !c.failed, err
}

// errFound ends a part of the check after a failure that makes the rest of it vain.
var errFound = errors.New("the check has found a failure")

type checker struct {
	Options
	s      *exec.Strategy
	report func(Finding)
	failed bool
	// kill is called with the process group of the next action; nil kills nothing.
	kill func(group int)
	run  uint64
	boot int
	// before and after are the versions of the machine before the upgrade and after it.
	before, after map[string]string
	// took is how long each action took when nothing was killed.
	took map[string]time.Duration
}

func (c *checker) started(_ string, group int) {
	if kill := c.kill; kill != nil {
		c.kill = nil
		kill(group)
	}
}

func (c *checker) say(level Level, what, format string, args ...any) {
	c.failed = c.failed || level == Fail
	c.report(Finding{level, what, fmt.Sprintf(format, args...)})
}

// fails reports a failure and ends the part of the check.
func (c *checker) fails(what, format string, args ...any) error {
	c.say(Fail, what, format, args...)
	return errFound
}

func (c *checker) job(plan message.ChangeSet) strategy.Job {
	return strategy.Job{
		Tenant: "check", Host: "check", Run: c.run, NotAfter: time.Now().Add(24 * time.Hour), BootID: fmt.Sprintf("00000000-0000-4000-8000-%012d", c.boot),
		Plan: plan, Progress: func(int, string) {},
	}
}

// timed notes how long an action takes.
func (c *checker) timed(name string, call func() error) error {
	began := time.Now()
	err := call()
	if err == nil {
		c.took[name] = time.Since(began)
	}
	return err
}

func (c *checker) play(ctx context.Context) error {
	if err := c.reset(ctx); err != nil {
		return err
	}
	if err := c.static(ctx); err != nil {
		return err
	}
	if err := c.ordinary(ctx); err != nil {
		return err
	}
	if err := c.whole(ctx); err != nil {
		return err
	}
	if c.Reset == "" {
		c.say(Note, "kills", "nothing was killed: give --reset, a command that makes this machine what it was before")
		return nil
	}
	for _, part := range []struct {
		name string
		play func(context.Context, string, time.Duration) error
	}{{"prepare", c.killPrepare}, {"upgrade", c.killUpgrade}, {"confirm", c.killConfirm}, {"rollback", c.killRollback}} {
		took, played := c.took[part.name]
		if !played {
			continue
		}
		for _, at := range []struct {
			name  string
			share float64
		}{{"at its start", 0}, {"in its middle", 0.5}, {"at its end", 0.9}} {
			if err := c.reset(ctx); err != nil {
				return err
			}
			err := part.play(ctx, part.name+" was killed "+at.name, time.Duration(float64(took)*at.share))
			if err != nil && !errors.Is(err, errFound) {
				return err
			}
		}
	}
	if err := c.reset(ctx); err != nil {
		return err
	}
	if err := c.rollBackAndForth(ctx); err != nil && !errors.Is(err, errFound) {
		return err
	}
	return c.reset(ctx)
}

// reset makes the machine what it was before, and begins a new run.
func (c *checker) reset(ctx context.Context) error {
	c.run++
	c.boot++
	return c.shell(ctx, c.Reset)
}

func (c *checker) shell(ctx context.Context, command string) error {
	if command == "" {
		return nil
	}
	out, err := osexec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the command %q failed: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// static checks what changes nothing: the folder, versions and plan.
func (c *checker) static(ctx context.Context) error {
	if err := c.s.Detect(ctx); err != nil {
		return c.fails("scripts", "%v", err)
	}
	c.say(OK, "scripts", "the folder and its scripts may be run")
	err := c.timed("versions", func() (err error) { c.before, err = c.s.Versions(ctx); return err })
	if err != nil {
		return c.fails("versions", "%v", err)
	}
	c.say(OK, "versions", "%d in %s", len(c.before), c.took["versions"].Round(time.Millisecond))
	plan, err := c.s.Plan(ctx, c.job(message.ChangeSet{}))
	switch {
	case errors.Is(err, strategy.ErrNoPlan):
		c.say(Note, "plan", "there is no script plan, so nobody sees in advance what a run would change")
		return nil
	case err != nil:
		return c.fails("plan", "%v", err)
	}
	c.say(OK, "plan", "%d changes, %d held", len(plan.Changes), len(plan.Held))
	return c.unchanged(ctx, "plan")
}

// ordinary confirms the system before the upgrade, as after each ordinary start of the machine.
func (c *checker) ordinary(ctx context.Context) error {
	if boot, err := c.s.Booted(ctx); err == nil && boot.Running == "" {
		c.say(Note, "confirm", "there are no scripts booted and confirm: right for a machine that has one bootable system")
		return nil
	}
	if err := c.confirmed(ctx, "before upgrade", message.ChangeSet{}); err != nil {
		return err
	}
	if err := c.unchanged(ctx, "confirm before upgrade"); err != nil {
		return err
	}
	c.say(OK, "confirm before upgrade", "what runs was confirmed twice, and has not changed")
	return nil
}

// confirmed checks that the system which runs can be confirmed, and confirmed again: a worker
// that is killed after the first time does not know of it.
func (c *checker) confirmed(ctx context.Context, when string, plan message.ChangeSet) error {
	for range 2 {
		boot, err := c.s.Booted(ctx)
		leads := func(change message.Change) bool { return change.To == boot.Running }
		switch {
		case err != nil:
			return c.fails("booted "+when, "%v", err)
		case boot.Running == "":
			return nil
		case boot.Failed != "":
			return c.fails("booted "+when, "it says that the machine gave up %s, which it did not", boot.Failed)
		case len(plan.Changes) > 0 && !slices.ContainsFunc(plan.Changes, leads):
			return c.fails("booted "+when, "it says that %s runs, which no change of the plan leads to: a run would keep it before its checks have passed; name it as the plan does", boot.Running)
		}
		if err := c.timed("confirm", func() error { return c.s.Confirm(ctx, boot) }); err != nil {
			return c.fails("confirm "+when, "%v", err)
		}
	}
	return nil
}

// unchanged checks that an action has not changed what runs.
func (c *checker) unchanged(ctx context.Context, name string) error {
	now, err := c.s.Versions(ctx)
	switch {
	case err != nil:
		return c.fails("versions after "+name, "%v", err)
	case !maps.Equal(now, c.before):
		return c.fails(name, "it has changed what runs: %s; only upgrade may do that", differences(c.before, now))
	}
	return nil
}

// differences names the first versions that differ.
func differences(from, to map[string]string) string {
	const named = 5
	var all []string
	for _, name := range slices.Sorted(maps.Keys(union(from, to))) {
		if from[name] != to[name] {
			all = append(all, message.Change{Name: name, From: from[name], To: to[name]}.String())
		}
	}
	if more := len(all) - named; more > 0 {
		all = append(all[:named], fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// prepared prepares the machine and returns the plan.
func (c *checker) prepared(ctx context.Context, what string) (plan message.ChangeSet, err error) {
	err = c.timed("prepare", func() (err error) { plan, err = c.s.Prepare(ctx, c.job(message.ChangeSet{})); return err })
	if err != nil {
		return plan, c.fails(what, "%v", err)
	}
	return plan.Sorted(), c.unchanged(ctx, what)
}

// whole plays one upgrade in order.
func (c *checker) whole(ctx context.Context) error {
	plan, err := c.prepared(ctx, "prepare")
	if err != nil {
		return err
	}
	if len(plan.Changes) == 0 {
		c.say(Note, "prepare", `it told no plan, so done is proved by exit status alone; print a line {"plan": {"changes": [{"name": ..., "from": ..., "to": ...}]}}`)
	} else {
		c.say(OK, "prepare", "%d changes planned in %s", len(plan.Changes), c.took["prepare"].Round(time.Millisecond))
	}
	again, err := c.prepared(ctx, "prepare again")
	if err != nil {
		return err
	}
	if !slices.Equal(plan.Changes, again.Changes) {
		return c.fails("prepare again", "the plan is another one, though nothing was upgraded in between")
	}
	if outcome, err := c.s.Resume(ctx, c.job(plan)); err != nil || outcome != strategy.NotDone {
		return c.fails("resume before upgrade", "it %s; nothing was upgraded, so it must end with exit status 11", ended(outcome, err))
	}
	c.say(OK, "resume before upgrade", "not done, as it is")
	var outcome strategy.Outcome
	err = c.timed("upgrade", func() (err error) { outcome, err = c.s.Upgrade(ctx, c.job(plan)); return err })
	if err != nil {
		return c.fails("upgrade", "%v", err)
	}
	c.say(OK, "upgrade", "%s in %s", ended(outcome, nil), c.took["upgrade"].Round(time.Millisecond))
	if err := c.complete(ctx, "upgrade", plan, outcome); err != nil {
		return err
	}
	if c.after, err = c.s.Versions(ctx); err != nil {
		return c.fails("versions after upgrade", "%v", err)
	}
	if len(plan.Changes) > 0 && maps.Equal(c.before, c.after) {
		c.say(Note, "versions", "they are the same before and after the upgrade, so nobody sees what it changed")
	}
	return c.back(ctx, plan)
}

// complete checks that an upgrade which says that it is done is, and that its system can be
// confirmed.
func (c *checker) complete(ctx context.Context, what string, plan message.ChangeSet, outcome strategy.Outcome) error {
	if err := c.verified(ctx, what, plan, outcome); err != nil {
		return err
	}
	if err := c.confirmed(ctx, "after "+what, plan); err != nil {
		return err
	}
	c.say(OK, what, "the host has its plan, and verify passes")
	return nil
}

// verified checks that nothing of the plan of an upgrade is missing, that resume says the same,
// and that verify passes.
func (c *checker) verified(ctx context.Context, what string, plan message.ChangeSet, outcome strategy.Outcome) error {
	if outcome == strategy.RebootRequired {
		if err := c.nothingMissing(ctx, what+", before the reboot", plan, true); err != nil {
			return err
		}
		c.boot++
		if err := c.shell(ctx, c.Boot); err != nil {
			return err
		}
	}
	if err := c.nothingMissing(ctx, what, plan, false); err != nil {
		return err
	}
	if outcome, err := c.s.Resume(ctx, c.job(plan)); err != nil || outcome != strategy.Done {
		return c.fails("resume after "+what, "it %s; the upgrade is complete, so it must end with exit status 0", ended(outcome, err))
	}
	if err := c.s.Verify(ctx, c.job(plan)); err != nil {
		return c.fails("verify after "+what, "%v", err)
	}
	return nil
}

func (c *checker) nothingMissing(ctx context.Context, what string, plan message.ChangeSet, staged bool) error {
	job := c.job(plan)
	job.Staged = staged
	missing, err := c.s.Missing(ctx, job)
	switch {
	case err != nil:
		return c.fails("missing after "+what, "%v", err)
	case len(missing) > 0:
		return c.fails(what, "it says that it is done, and %d of %d changes of the plan are missing, such as %s; compare the host with the plan, and believe no exit status",
			len(missing), len(plan.Changes), missing[0])
	}
	return nil
}

// ended says how an action ended.
func ended(outcome strategy.Outcome, err error) string {
	switch {
	case err != nil:
		return "failed: " + err.Error()
	case outcome == strategy.Done:
		return "says done"
	case outcome == strategy.RebootRequired:
		return "says that a reboot is required"
	default:
		return "says not done"
	}
}

// back rolls the upgrade back, if there is a way.
func (c *checker) back(ctx context.Context, plan message.ChangeSet) error {
	err := c.timed("rollback", func() error { return c.rollBack(ctx, c.job(plan)) })
	switch {
	case errors.Is(err, strategy.ErrNoRollback):
		c.say(Note, "rollback", "there is no script rollback: a host whose upgrade fails stays as it is")
		return nil
	case err != nil:
		return c.fails("rollback", "%v", err)
	}
	now, err := c.s.Versions(ctx)
	if err != nil {
		return c.fails("versions after rollback", "%v", err)
	}
	if !maps.Equal(now, c.before) {
		return c.fails("rollback", "the versions are not those from before: %s", differences(c.before, now))
	}
	c.say(OK, "rollback", "the host has the versions that it had")
	return nil
}

// rollBackAndForth plays a run that rolls back the upgrade, and one that rolls that back: the machine has what it
// had before each.
func (c *checker) rollBackAndForth(ctx context.Context) error {
	plan, err := c.prepared(ctx, "prepare")
	if err != nil {
		return err
	}
	outcome, err := c.s.Upgrade(ctx, c.job(plan))
	if err != nil {
		return c.fails("upgrade", "%v", err)
	}
	if err := c.verified(ctx, "upgrade", plan, outcome); err != nil {
		return err
	}
	took, err := c.rollBackRun(ctx, plan, c.before)
	if errors.Is(err, strategy.ErrNoRollback) {
		c.say(Note, "prepare-rollback", "no run that is over can be rolled back on this host: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	c.say(OK, "prepare-rollback", "a run of its own rolls back the upgrade, prepared in %s", took.Round(time.Millisecond))
	if len(plan.Changes) == 0 {
		return nil
	}
	if _, err := c.rollBackRun(ctx, message.ChangeSet{Changes: strategy.Reversed(plan.Changes)}, c.after); err != nil {
		return err
	}
	c.say(OK, "prepare-rollback", "and another one rolls that back")
	return nil
}

// rollBackRun has a run of its own roll back the run that has carried out a plan, and compares the versions
// with those from before it.
func (c *checker) rollBackRun(ctx context.Context, plan message.ChangeSet, want map[string]string) (took time.Duration, err error) {
	const what = "prepare-rollback"
	has, err := c.s.Versions(ctx)
	if err != nil {
		return 0, c.fails("versions before "+what, "%v", err)
	}
	job := c.job(plan)
	job.RollbackOf = c.run
	c.run++
	job.Run = c.run
	var back message.ChangeSet
	for range 2 { // It may be called again after a crash.
		began := time.Now()
		if back, err = c.s.PrepareRollback(ctx, job); errors.Is(err, strategy.ErrNoRollback) {
			return 0, err
		}
		if err != nil {
			return 0, c.fails(what, "%v", err)
		}
		took = time.Since(began)
	}
	if now, err := c.s.Versions(ctx); err != nil || !maps.Equal(now, has) {
		return 0, c.fails(what, "it has changed what runs: %s, %v; only rollback may do that", differences(has, now), err)
	}
	if wanted := strategy.Reversed(plan.Changes); !slices.Equal(back.Changes, wanted) {
		return 0, c.fails(what, "it tells the plan %v; to undo all of the upgrade it is %v", message.ChangeTexts(back.Changes), message.ChangeTexts(wanted))
	}
	if err := c.rollBack(ctx, job); err != nil {
		return 0, c.fails("rollback of a run that is over", "%v", err)
	}
	proof := c.job(back)
	proof.Reversed = true
	if missing, err := c.s.Missing(ctx, proof); err != nil || len(missing) > 0 {
		return 0, c.fails("missing after "+what, "%v is missing, %v; with a reversed plan, compare the host with it", message.ChangeTexts(missing), err)
	}
	now, err := c.s.Versions(ctx)
	if err != nil || !maps.Equal(now, want) {
		return 0, c.fails("rollback of a run that is over", "the versions are not those that it had before: %s, %v", differences(want, now), err)
	}
	return took, nil
}

// rollBack rolls back, with the reboot that this may require, which may be asked for once.
func (c *checker) rollBack(ctx context.Context, job strategy.Job) error {
	outcome, err := c.s.Rollback(ctx, job)
	if err != nil || outcome != strategy.RebootRequired {
		return err
	}
	c.boot++
	if err := c.shell(ctx, c.Boot); err != nil {
		return err
	}
	if outcome, err = c.s.Rollback(ctx, job); err == nil && outcome == strategy.RebootRequired {
		err = errors.New("it asks for a reboot again after the reboot; a host reboots once to roll back")
	}
	return err
}

// killed has an action killed after a time, with all that it has started.
func (c *checker) killed(after time.Duration, call func() error) {
	c.kill = func(group int) {
		time.AfterFunc(after, func() { _ = syscall.Kill(-group, syscall.SIGKILL) }) // One that has ended was not killed.
	}
	_ = call() // How it ended does not count: that is the point.
	c.kill = nil
}

func (c *checker) killPrepare(ctx context.Context, what string, after time.Duration) error {
	c.killed(after, func() error { _, err := c.s.Prepare(ctx, c.job(message.ChangeSet{})); return err })
	if _, err := c.prepared(ctx, "prepare after "+what); err != nil {
		return err
	}
	c.say(OK, what, "prepare continues, and what runs is as before")
	return nil
}

func (c *checker) killUpgrade(ctx context.Context, what string, after time.Duration) error {
	plan, err := c.prepared(ctx, "prepare")
	if err != nil {
		return err
	}
	c.killed(after, func() error { _, err := c.s.Upgrade(ctx, c.job(plan)); return err })
	outcome, err := c.s.Resume(ctx, c.job(plan))
	if err == nil && outcome == strategy.NotDone {
		outcome, err = c.s.Upgrade(ctx, c.job(plan))
	}
	if err != nil {
		return c.fails("resume after "+what, "%v", err)
	}
	if err := c.complete(ctx, what, plan, outcome); err != nil {
		return err
	}
	now, err := c.s.Versions(ctx)
	if err == nil && !maps.Equal(now, c.after) {
		return c.fails(what, "the versions are not those of an upgrade that was not killed: %s", differences(c.after, now))
	}
	return err
}

func (c *checker) killConfirm(ctx context.Context, what string, after time.Duration) error {
	plan, err := c.prepared(ctx, "prepare")
	if err != nil {
		return err
	}
	outcome, err := c.s.Upgrade(ctx, c.job(plan))
	if err != nil {
		return c.fails("upgrade", "%v", err)
	}
	if err := c.verified(ctx, "upgrade", plan, outcome); err != nil {
		return err
	}
	boot, err := c.s.Booted(ctx)
	if err != nil {
		return c.fails("booted after upgrade", "%v", err)
	}
	c.killed(after, func() error { return c.s.Confirm(ctx, boot) })
	if err := c.confirmed(ctx, "after "+what, plan); err != nil {
		return err
	}
	c.say(OK, what, "confirm continues, and the new system runs")
	return nil
}

func (c *checker) killRollback(ctx context.Context, what string, after time.Duration) error {
	plan, err := c.prepared(ctx, "prepare")
	if err != nil {
		return err
	}
	if _, err := c.s.Upgrade(ctx, c.job(plan)); err != nil {
		return c.fails("upgrade", "%v", err)
	}
	c.killed(after, func() error { _, err := c.s.Rollback(ctx, c.job(plan)); return err })
	if err := c.rollBack(ctx, c.job(plan)); err != nil {
		return c.fails("rollback after "+what, "%v", err)
	}
	now, err := c.s.Versions(ctx)
	switch {
	case err != nil:
		return c.fails("versions after "+what, "%v", err)
	case !maps.Equal(now, c.before):
		return c.fails(what, "the versions are not those from before: %s", differences(c.before, now))
	}
	c.say(OK, what, "rollback continues, and the host has the versions that it had")
	return nil
}

// Scratch makes the state folder of a check.
func Scratch() (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", "osupgrade-strategy-check-*")
	return filepath.Join(dir, "state"), func() error { return os.RemoveAll(dir) }, err
}
