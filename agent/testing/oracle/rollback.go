package oracle

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// doneBy are, by the log, the runs that have changed the hosts and done the steps of an environment last
// (invariant 17).
type doneBy struct {
	// runs are the runs of the environment that have ended, by id.
	runs map[uint64]endedRun
	// steps are what runs have done last, by the name of the stage; undone is the last run that has undone a
	// step.
	steps  map[string]stepBy
	undone map[string]uint64
}

// endedRun is what a rollback of a run has to go by.
type endedRun struct {
	stages []string
	// closed is the stage that is the point of no return, since when it has begun; since is the run from
	// which this one went on.
	closed string
	at     time.Time
	since  uint64
	// outputs are those that its steps, and those before it, had given when it ended.
	outputs []outputsOf
}

// stepBy is the last run that has done a step; undone means that it has undone it.
type stepBy struct {
	run    uint64
	undone bool
}

// doneIn returns what is known of an environment.
func (o *Oracle) doneIn(environment string) *doneBy {
	if o.done[environment] == nil {
		o.done[environment] = &doneBy{runs: map[uint64]endedRun{}, steps: map[string]stepBy{}, undone: map[string]uint64{}}
	}
	return o.done[environment]
}

// opensRollback judges a rollback (invariant 17): there is a way back, its members are hosts that the runs
// have changed last, its stages come in the reverse order, of the newest run if they were edited in between,
// and it undoes the steps that these runs have done last.
func (o *Oracle) opensRollback(r message.Decoded, e message.Opened) {
	runs, done := e.RollsBack(), o.doneIn(e.Environment)
	if runs.IsZero() {
		return
	}
	o.count("rollbacks opened")
	edited := done.edited(runs)
	for id, run := range done.runs {
		if run.closed != "" && (runs.Has(id) || runs.Has(run.since)) {
			o.violated("invariant 17: record %d rolls back %s, and stage %s of run %d has closed the way back at %s", r.Seq, runs.Runs(), run.closed, id, run.at)
		}
		if runs.Has(id) && (id == runs.Of || !edited) && !reversed(run.stages, e.Rollout.Stages) {
			o.violated("invariant 17: record %d rolls back %s in another order than that of the stages %v of run %d backwards", r.Seq, runs.Runs(), run.stages, id)
		}
	}
	for _, name := range e.Members {
		if by := o.changedBy[name]; by != 0 && !runs.Has(by) {
			o.violated("invariant 17: record %d rolls back %s on %s, which run %d has changed last", r.Seq, runs.Runs(), name, by)
		}
	}
	for _, s := range e.Rollout.Stages {
		if s.Step == nil {
			continue
		}
		o.count("steps that a rollback is to undo")
		if by := done.steps[s.Name]; !runs.Has(by.run) || s.Undo == by.undone {
			o.violated("invariant 17: record %d rolls back %s with step %s, undo %t, and %+v was the last to do it", r.Seq, runs.Runs(), s.Name, s.Undo, by)
		}
	}
}

// edited reports whether two runs of an interval had stages in another order.
func (d *doneBy) edited(runs message.Interval) bool {
	before := map[[2]string]bool{}
	for id, run := range d.runs {
		if !runs.Has(id) {
			continue
		}
		for n, first := range run.stages {
			for _, then := range run.stages[n+1:] {
				before[[2]string{first, then}] = true
			}
		}
	}
	for pair := range before {
		if before[[2]string{pair[1], pair[0]}] {
			return true
		}
	}
	return false
}

// reversed reports whether stages come in the reverse order of the stages of an earlier run.
func reversed(before []string, now []rollout.ResolvedStage) bool {
	last := len(before)
	for _, s := range now {
		if n := slices.Index(before, s.Name); n >= 0 {
			if n > last {
				return false
			}
			last = n
		}
	}
	return true
}

// noteDone notes what the run of the record at hand has done when it ends.
func (o *Oracle) noteDone() {
	p, done := o.run, o.doneIn(o.environment)
	ended := endedRun{outputs: p.standing(len(p.stages))}
	if p.reached != nil && p.rollsBack.IsZero() {
		ended.since = p.reached.Since
	}
	for n := range p.stages {
		s := &p.stages[n]
		ended.stages = append(ended.stages, s.Name)
		if s.PointOfNoReturn && s.begun {
			ended.closed, ended.at = s.Name, s.begunAt
		}
		if s.doing.done {
			done.steps[s.Name] = stepBy{p.key(), s.Undo}
			if s.Undo {
				done.undone[s.Name] = p.key()
			}
		}
	}
	done.runs[p.key()] = ended
	if slices.ContainsFunc(p.members, func(m *member) bool { return m.upgraded }) {
		o.upgraded = append(o.upgraded, p.key())
	}
	for _, m := range p.members {
		if m.upgraded || p.rollsBack.IsZero() && m.upgrade != 0 {
			o.changedBy[m.name] = p.key()
		}
		if m.upgraded && !p.rollsBack.IsZero() {
			o.count("hosts that are rolled back")
		}
	}
}

// Upgraded returns an ended run that has upgraded a host, counted back from the newest; 0 for none.
func (o *Oracle) Upgraded(back int) uint64 {
	if back >= len(o.upgraded) {
		return 0
	}
	return o.upgraded[len(o.upgraded)-1-back]
}

// RunsRolledBack judges what a machine runs once it has carried out a rollback: what it had before the oldest of
// the runs that have changed it (invariant 17). A run may have told it to upgrade and changed nothing, without
// an answer that says so: then it keeps what it had. version is the run that has installed what it runs, 0 for
// what the machine had at first.
func (o *Oracle) RunsRolledBack(host string, run, version uint64) {
	o.count("machines rolled back by a rollback")
	was, changed := o.hadBefore(host, run)
	if installs := o.machines[host].installs; !changed && o.changedBy[host] != 0 {
		o.count("machines rolled back that nothing has changed")
		was, changed = installs[len(installs)-1].was, true // That of the rollback.
	}
	switch runs := o.rollsBack[run].Runs(); {
	case !changed:
		o.violated("invariant 17: %s is rolled back by run %d, and none of %s has told it to upgrade", host, run, runs)
	case was != version:
		o.violated("invariant 17: %s is rolled back to %d by run %d, which rolls back %s, and it had %d before", host, version, run, runs, was)
	}
}

// NothingToRollBack notes that a machine has nothing of what a rollback undoes, and may say that it is
// done without an upgrade. It is judged that this is so if the machine is the only one of its host: none of
// the runs has changed it, or it has what it had before the oldest.
func (o *Oracle) NothingToRollBack(host string, run, version uint64, only bool) {
	o.machines[host].isBack[run] = true
	if was, changed := o.hadBefore(host, run); only && changed && was != version {
		o.violated("invariant 17: %s has nothing for run %d to roll back, and runs %d; it had %d before %s", host, run, version, was, o.rollsBack[run].Runs())
	}
}

// hadBefore returns what a machine had before the oldest run that has changed it of those that a rollback
// rolls back; false if none has.
func (o *Oracle) hadBefore(host string, run uint64) (was uint64, changed bool) {
	for _, i := range o.machines[host].installs {
		if o.rollsBack[run].Has(i.run) {
			return i.was, true
		}
	}
	return 0, false
}

// install is what a machine had before a run has changed it, by the run that has installed that.
type install struct{ run, was uint64 }

// Installs notes what a machine has when a run changes it.
func (o *Oracle) Installs(host string, run, was uint64) {
	t := o.machines[host]
	t.installs = append(slices.Clone(t.installs), install{run, was})
}
