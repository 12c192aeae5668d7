package decide

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Trial is what waits for the checks of a run. A run may check each host after its upgrade. The
// site says so with each command (message.Record.Checks), before the upgrade begins. A system
// that such a run installs is on trial: it is confirmed when the checks have passed on this
// host, before the site hears that they did. Where they fail it stays unconfirmed, so that a
// machine with boot counting goes back by itself with its next start.
//
// What is on trial are versions, and not a boot or a run: the machine may start the old
// system in between, and a later run may have the checks that this one never had. The rules
// are the rows of TestRulesOfATrial; these are their reasons:
//
//   - The trial is on disk before the journal accepts the upgrade. No start of the machine
//     and of the worker is therefore taken for an ordinary one, whatever the plan on disk is.
//   - Checks that have passed end a trial, whatever runs: the site has the host in service
//     again. They are on disk before the system is confirmed, and the site hears of them
//     after that. Asked once more for the same task, the worker does not run them again:
//     they could fail now, on a confirmed system.
//   - A command of a run without checks ends a trial, because nothing is owed any more.
//   - A machine that has given a version up has no better system than the one that it went
//     back to.
//   - A start of the machine may undo an upgrade that is on trial and was answered with done.
//     Such a host fails the checks of that run (stillUpgraded).
type Trial struct {
	// Versions are those that were installed; none means whatever runs, because another
	// worker of this host has installed it.
	Versions []string `json:"versions,omitempty"`
	// Since is when the last of them was to be installed.
	Since time.Time `json:"since,omitzero"`
	// Until bounds a trial of which the worker may never hear the end, because another
	// worker has carried out the upgrade; zero for one of its own.
	Until time.Time `json:"until,omitzero"`
	// Passed is the task in which the checks have passed; nil while the trial lasts.
	Passed *PassedTask `json:"passed,omitempty"`
}

// PassedTask identifies a task message.AfterHost of this host.
type PassedTask struct {
	Run     uint64 `json:"run"`
	Attempt int    `json:"attempt"`
}

// maxOnTrial is how many versions of earlier runs are remembered beside those of a new one.
const maxOnTrial = 1000

// OnTrial reports whether the system that has started waits for checks.
func (b Boots) OnTrial(boot strategy.Boot, now time.Time) bool {
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
func (b Boots) commanded(checks bool, installs []string, now time.Time) Boots {
	now = now.UTC().Round(0)
	switch t := b.Trial; {
	case !checks, t != nil && t.Passed != nil && len(installs) == 0:
		// What has passed was asked for by an earlier run. The task of a restored site may
		// bear its numbers again.
		b.Trial = nil
	case len(installs) == 0:
	case t == nil || t.Passed != nil:
		b.Trial = &Trial{Versions: installs, Since: now}
	default:
		earlier := slices.DeleteFunc(slices.Clone(t.Versions), func(v string) bool { return slices.Contains(installs, v) })
		b.Trial = &Trial{Versions: append(earlier[max(0, len(earlier)-maxOnTrial):], installs...), Since: now}
	}
	return b
}

// takenOver returns the boots of a worker that gets the lease from another one: what that
// one knew of a trial counts, and is not known here. until is the end of the run under way
// that has sent the host an upgrade and checks it after that; zero when there is none.
func (b Boots) takenOver(until time.Time) Boots {
	b.Trial = nil
	if !until.IsZero() {
		b.Trial = &Trial{Until: until}
	}
	return b
}

// endTrial returns the boots after the checks have passed in a task.
func (b Boots) endTrial(t message.Task) Boots {
	if b.Trial != nil {
		ended := *b.Trial
		ended.Passed = &PassedTask{t.Run, t.Attempt}
		b.Trial = &ended
	}
	return b
}

// PassedIn reports whether the checks are known to have passed in a task.
func (b Boots) PassedIn(t message.Task) bool {
	p := b.Trial
	return p != nil && p.Passed != nil && t.Kind == message.AfterHost && *p.Passed == PassedTask{t.Run, t.Attempt}
}

// withoutAccepted returns the boots without the trial of the versions that a person has
// accepted.
func (b Boots) withoutAccepted(a AcceptedVersions) Boots {
	next := b
	for _, v := range b.Waits() {
		if a.has(v, b.Trial.Since) {
			next = next.withoutTrialOf(v)
		}
	}
	return next
}

// withoutTrialOf returns the boots after the machine gave up a version, or a person accepted it.
func (b Boots) withoutTrialOf(version string) Boots {
	t := b.Trial
	if t == nil {
		return b
	}
	left := slices.DeleteFunc(slices.Clone(t.Versions), func(v string) bool { return v == version })
	if b.Trial = nil; len(left) > 0 {
		b.Trial = &Trial{Versions: left, Since: t.Since, Until: t.Until, Passed: t.Passed}
	}
	return b
}

// Waits returns the versions that wait for checks.
func (b Boots) Waits() []string {
	if b.Trial == nil || b.Trial.Passed != nil {
		return nil
	}
	return b.Trial.Versions
}
