// Package promotion decides how far an environment has come to a release: to which it goes and went
// before, which runs went there, which steps are done, whether the way back is closed, and whether the
// release was rolled back. And it decides whether to go to a release is to roll back the present one.
//
// It outlives runs and windows. A run counts once it has taken a host out of service or begun a step. A
// run of all hosts to another release begins anew. A run of chosen hosts never does: a release that one
// host tries out is not the one to which its environment goes. A run without a release changes nothing.
//
// It is pure: the log keeps in `opened` how far the runs before have come (message.Promotion), and
// package run folds it. Which hosts have a release is not decided here: see Host.
package promotion

import (
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Run is what a run has done so far.
type Run struct {
	ID uint64
	// Release is the release to which it goes; zero if it has none.
	Release release.Ref
	// Chosen means that somebody has chosen its hosts.
	Chosen bool
	// RollbackOf is the newest run that it rolls back; 0 if it is no rollback. Back is what people see
	// of it then.
	RollbackOf uint64
	Back       message.RolledBackIn
	// Touched means that it has taken a host out of service or begun a step.
	Touched bool
	// Steps are its stages whose steps are done, Closed the point of no return if that has begun.
	Steps  []string
	Closed *message.Closed
}

// After returns how far an environment has come with a run, from how far it was before; nil if no run has
// gone to a release. It changes nothing that before refers to.
func After(before *message.Promotion, run Run) *message.Promotion {
	switch {
	case !run.Touched:
		return before
	case run.RollbackOf != 0:
		return rolledBack(before, run)
	case run.Release.IsZero():
		return before
	case before != nil && before.Release == run.Release && before.RolledBack == nil:
		return more(*before, run)
	case run.Chosen:
		return before
	}
	return more(message.Promotion{Release: run.Release, Was: was(before, run.Release), Since: run.ID}, run)
}

// more adds what a run has done to how far those before have come to the same release.
func more(p message.Promotion, run Run) *message.Promotion {
	p.Last = run.ID
	p.Steps = slices.Clone(p.Steps)
	for _, stage := range run.Steps {
		if !slices.Contains(p.Steps, stage) {
			p.Steps = append(p.Steps, stage)
		}
	}
	if p.Closed == nil {
		p.Closed = run.Closed
	}
	return &p
}

// was returns the release to which an environment went before it goes to another one; nil if there is
// none. A release that was rolled back is none: the hosts have what was before it.
func was(before *message.Promotion, to release.Ref) *release.Ref {
	switch {
	case before == nil:
		return nil
	case before.Release == to:
		return before.Was // It was rolled back, and goes there again.
	case before.RolledBack == nil:
		return &before.Release
	case before.Was == nil || *before.Was == to:
		return nil
	}
	return before.Was
}

// rolledBack returns how far an environment has come after a rollback: the release is rolled back if the
// run was one of those that went there, and there again if the run was the one that has rolled it back.
func rolledBack(before *message.Promotion, run Run) *message.Promotion {
	if before == nil {
		return nil
	}
	p := *before
	switch back := p.RolledBack; {
	case back != nil && back.Run == run.RollbackOf:
		p.RolledBack = nil
		return more(p, run) // Its steps are done again.
	case p.Since <= run.RollbackOf && run.RollbackOf <= p.Last:
		p.RolledBack = new(run.Back)
		p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(stage string) bool { return slices.Contains(run.Steps, stage) })
	}
	return &p
}

// GoesBack returns the newest of the runs that an environment rolls back by going to a release: those to
// the present one, if that release is the one from before and the way back is open; 0 otherwise. A release
// that was rolled back may still be on some hosts.
func GoesBack(p *message.Promotion, to release.Ref) uint64 {
	if p == nil || p.Was == nil || *p.Was != to || p.Closed != nil {
		return 0
	}
	return p.Last
}

// Host is the release that a host has, and the one that it had before its last run; zero for none, or if
// it has had a run without a release since.
type Host struct {
	Release, Was release.Ref
}

// Upgraded returns what a host has after a run to a release in which it was upgraded; zero is a run
// without one.
func (h Host) Upgraded(to release.Ref) Host {
	if to == h.Release && !to.IsZero() {
		return h
	}
	return Host{Release: to, Was: h.Release}
}

// RolledBack returns what a host has after a rollback: what it had before the run that was rolled back. A
// rollback of the rollback gives it back what it has now.
func (h Host) RolledBack() Host { return Host{Release: h.Was, Was: h.Release} }
