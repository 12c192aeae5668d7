package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// A run may check each host after its upgrade. The site says so with each command
// (message.Record.Checks), before the upgrade begins. A system that such a run installs is on
// trial: it is confirmed when the checks have passed on this host, before the site hears
// that they did. Where they fail it stays unconfirmed, so that a machine with boot counting
// goes back by itself with its next start.
//
// What is on trial are versions, and not a boot or a run: the machine may start the old
// system in between, and a later run may have the checks that this one never had. The rules:
//
//   - The trial is on disk before the journal accepts the upgrade. No start of the machine
//     and of the worker is therefore taken for an ordinary one, whatever the plan on disk is.
//   - A command of a run without such checks ends it: nothing is owed any more, and what runs
//     is confirmed as after any other start. So does each command of an older site, which
//     never says that there are checks.
//   - Passed checks end it, in whichever run they were asked for, and whatever runs: the site
//     has the host in service again. That they passed is on disk before the system is
//     confirmed, and that is done before the site is told. Asked once more for the same task,
//     the worker does not run the checks again: they could fail now, on a confirmed system.
//   - A machine that has given a version up has no better system than the one that it went
//     back to: that one is confirmed at once, on trial or not.
//   - The prepare and the upgrade of a further run with checks leave what is on trial on
//     trial. So does the end of the run, by whatever, and a site that cannot be reached.
//   - A person who accepts the version on the host ends its trial: it is confirmed whatever
//     the checks say, also when the site does not wait for them any more.
//   - The upgrade of a system that was on trial, answered with done, may be undone by a start
//     of the machine before its checks. Such a host fails the checks of that run.
type trial struct {
	// Versions are those that were installed; none means whatever runs, because another
	// worker of this host has installed it.
	Versions []string `json:"versions,omitempty"`
	// Since is when the last of them was to be installed.
	Since time.Time `json:"since,omitzero"`
	// Until bounds a trial of which the worker may never hear the end, because another
	// worker has carried out the upgrade; zero for one of its own.
	Until time.Time `json:"until,omitzero"`
	// Passed is the task in which the checks have passed; nil while the trial lasts.
	Passed *passed `json:"passed,omitempty"`
}

// passed identifies a task message.AfterHost of this host.
type passed struct {
	Run     uint64 `json:"run"`
	Attempt int    `json:"attempt"`
}

// maxOnTrial is how many versions of earlier runs are remembered beside those of a new one.
const maxOnTrial = 1000

// onTrial reports whether the system that has started waits for checks.
func (b boots) onTrial(boot strategy.Boot, now time.Time) bool {
	t := b.Trial
	switch {
	case t == nil || t.Passed != nil || boot.Running == "" || boot.Failed != "":
		return false
	case !t.Until.IsZero() && !now.Before(t.Until):
		return false
	default:
		return len(t.Versions) == 0 || slices.Contains(t.Versions, boot.Running)
	}
}

// commanded returns the boots before a command is carried out. checks tells that its run
// checks the host after the upgrade; installs are the versions that an upgrade installs.
func (b boots) commanded(checks bool, installs []string, now time.Time) boots {
	now = now.UTC().Round(0)
	switch t := b.Trial; {
	case !checks, t != nil && t.Passed != nil && len(installs) == 0:
		// What has passed was asked for by an earlier run. The task of a restored site may
		// bear its numbers again.
		b.Trial = nil
	case len(installs) == 0:
	case t == nil || t.Passed != nil:
		b.Trial = &trial{Versions: installs, Since: now}
	default:
		earlier := slices.DeleteFunc(slices.Clone(t.Versions), func(v string) bool { return slices.Contains(installs, v) })
		b.Trial = &trial{Versions: append(earlier[max(0, len(earlier)-maxOnTrial):], installs...), Since: now}
	}
	return b
}

// takenOver returns the boots of a worker that gets the lease from another one: what that
// one knew of a trial counts, and is not known here. until is the end of the run under way
// that has sent the host an upgrade and checks it after that; zero when there is none.
func (b boots) takenOver(until time.Time) boots {
	b.Trial = nil
	if !until.IsZero() {
		b.Trial = &trial{Until: until}
	}
	return b
}

// endTrial returns the boots after the checks have passed in a task.
func (b boots) endTrial(t message.Task) boots {
	if b.Trial != nil {
		ended := *b.Trial
		ended.Passed = &passed{t.Run, t.Attempt}
		b.Trial = &ended
	}
	return b
}

// withoutTrialOf returns the boots after the machine gave up a version, or a person accepted it.
func (b boots) withoutTrialOf(version string) boots {
	t := b.Trial
	if t == nil {
		return b
	}
	left := slices.DeleteFunc(slices.Clone(t.Versions), func(v string) bool { return v == version })
	if b.Trial = nil; len(left) > 0 {
		b.Trial = &trial{Versions: left, Since: t.Since, Until: t.Until, Passed: t.Passed}
	}
	return b
}

// passedIn reports whether the checks are known to have passed in a task.
func (b boots) passedIn(t message.Task) bool {
	p := b.Trial
	return p != nil && p.Passed != nil && t.Kind == message.AfterHost && *p.Passed == passed{t.Run, t.Attempt}
}

// waits returns the versions that wait for checks.
func (b boots) waits() []string {
	if b.Trial == nil || b.Trial.Passed != nil {
		return nil
	}
	return b.Trial.Versions
}

// takeAccepted ends the trial of each version that a person has accepted.
func (w *Worker) takeAccepted(ctx context.Context) error {
	if len(w.boots.waits()) == 0 {
		return nil
	}
	next, a := w.boots, w.accepted()
	for _, v := range w.boots.waits() {
		if a.has(v, w.boots.Trial.Since) {
			w.Log.Info("somebody has accepted the version, which is not on trial any more", "host", w.Host, "version", v)
			next = next.withoutTrialOf(v)
		}
	}
	return w.keepTrial(ctx, next)
}

// confirms reports whether the host may have more than one bootable system.
func (w *Worker) confirms() bool {
	_, confirms := w.Strategy.(strategy.Confirmer)
	return confirms
}

// noteTrial makes durable what a command says about checks, before the journal accepts it.
func (w *Worker) noteTrial(ctx context.Context, r message.Record, next Journal) error {
	if !w.confirms() {
		return nil
	}
	var installs []string
	if r.Checks && next.Action == message.Upgrade {
		// Without its plan the upgrade does not begin.
		plan, _ := readPlan(w.planPath(), next)
		for _, c := range plan.Changes {
			if c.To != "" {
				installs = append(installs, c.To)
			}
		}
	}
	return w.keepTrial(ctx, w.boots.commanded(r.Checks, installs, w.Now()))
}

// keepTrial writes the boots if their trial is another one. What runs is confirmed once it is
// not on trial any more.
func (w *Worker) keepTrial(ctx context.Context, next boots) error {
	if before := w.boots.Trial; next.Trial == before {
		return nil
	}
	if err := w.keepBoots(ctx, next); err != nil {
		return err
	}
	if w.boots.Judged != w.bootID {
		w.unconfirmed = wholeBoot
	}
	return nil
}

// pass are checks that have passed on this host, on their way to the loop.
type pass struct {
	task message.Task
	// began is the journal when they began: of what was installed after that they say
	// nothing (seed 3002183).
	began Journal
	// done gets the outcome; it is closed without one when nothing can be said now.
	done chan message.Outcome
}

// afterPass has the loop confirm the system on which checks have passed, and returns the
// outcome for the site. False means that there is none: the site asks again.
func (w *Worker) afterPass(ctx context.Context, t message.Task, began Journal) (message.Outcome, bool) {
	p := pass{t, began, make(chan message.Outcome, 1)}
	select {
	case w.passes <- p:
		w.passDue.Set()
	case <-ctx.Done():
		return message.Outcome{}, false
	}
	select {
	case o, some := <-p.done:
		return o, some
	case <-ctx.Done():
		return message.Outcome{}, false
	}
}

// takePass confirms the system on which checks have passed, if some have. It reports whether
// it did anything.
func (w *Worker) takePass(ctx context.Context) (bool, error) {
	select {
	case p := <-w.passes:
		defer close(p.done)
		err := w.settle(ctx, p)
		return true, err
	default:
		return false, nil
	}
}

// settle ends the trial of a host whose checks have passed. If the system cannot be
// confirmed, the site is told that they failed: the next start of the machine would undo the
// upgrade.
func (w *Worker) settle(ctx context.Context, p pass) error {
	j := w.journal
	if p.began.works() || j.works() || p.began.Log != j.Log || p.began.Seq != j.Seq {
		return nil // What they checked may be gone.
	}
	w.At("before pass")
	err := w.confirmPassed(ctx, p.task)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.At("after pass")
	if err != nil {
		w.Log.Warn("the checks have passed, and the system is not confirmed", "host", w.Host, "run", p.task.Run, "error", err)
	}
	p.done <- p.task.Outcome(err == nil, failureText(err))
	return nil
}

// confirmPassed ends the trial and confirms what runs.
func (w *Worker) confirmPassed(ctx context.Context, t message.Task) error {
	boot, err := w.booted(ctx)
	if err != nil || boot.Running == "" { // It has just one system.
		return err
	}
	if err := w.stillUpgraded(ctx, t); err != nil || w.boots.Trial == nil {
		return err
	}
	if !w.boots.passedIn(t) {
		if err := w.keepBoots(ctx, w.boots.endTrial(t)); err != nil {
			return err
		}
	}
	return w.confirm(ctx, boot)
}

// stillUpgraded returns an error if the host has answered that it is upgraded in the run of a
// task, and has gone back since: its checks have passed on the system before the upgrade.
func (w *Worker) stillUpgraded(ctx context.Context, t message.Task) error {
	j := w.journal
	if j.Run != t.Run || j.Action == message.Prepare || j.Result != message.Done {
		return nil
	}
	job := w.job()
	var err error
	if job.Plan, err = readPlan(w.planPath(), j); err != nil {
		return nil //nolint:nilerr // The upgrade was compared with its plan before it was answered.
	}
	if err := w.nothingMissing(ctx, job); err != nil {
		return fmt.Errorf("the host does not run any more what it was upgraded to: %w", err)
	}
	return nil
}
