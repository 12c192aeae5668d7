package oracle

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// doing is how the step of a stage stands by the log.
type doing struct {
	// underWay means that its outcome is awaited; host is where it is done, empty at the site.
	underWay bool
	host     string
	// attempt counts how often it has ended. done means that it has succeeded, passed that the run goes
	// on after it.
	attempt      int
	done, passed bool
	// sealed are its outputs as the log keeps them.
	sealed string
}

// taskRun is how a task came out where it was run.
type taskRun struct{ well, badly bool }

// stepUnderWay returns the stage whose step is under way; nil for none.
func (p *run) stepUnderWay() *stage {
	for n := range p.stages {
		if s := &p.stages[n]; s.doing.underWay {
			return s
		}
	}
	return nil
}

// stepBegins reports whether the event that a step begins reaches the step of the current stage.
func (p *run) stepBegins(e message.Begun) bool {
	if p.id == 0 || !p.allPrepared || len(p.stages) == 0 {
		return false
	}
	s := &p.stages[p.current()]
	return s.Name == e.Stage && s.Step != nil && !s.doing.passed && !s.doing.underWay && s.OnHost() == (e.Host != "")
}

// awaitsStep reports whether an outcome is that of the step under way.
func (p *run) awaitsStep(t message.Outcome) bool {
	s := p.stepUnderWay()
	return s != nil && s.Name == t.Stage && s.Undo == (t.Kind == message.Undo) && s.doing.host == t.Host && s.doing.attempt == t.Attempt
}

// stepBegun judges and applies that a step begins: all hosts and steps before it are done, and nothing
// after it has begun (invariant 13); it may begin like a host.
func (o *Oracle) stepBegun(r message.Decoded, e message.Begun, sent time.Time) {
	p := o.run
	n := p.current()
	s, what := &p.stages[n], "the beginning of step "+e.Stage
	for _, m := range p.members {
		switch {
		case m.stage < n && m.left():
			o.violated("invariant 13: %s, record %d, and %s of an earlier stage is %s", what, r.Seq, m.name, m.phase)
		case m.stage > n && (m.phase == checking || m.phase == checked || !m.tookAt.IsZero()): // Others may owe an undrain since an earlier run.
			o.violated("invariant 13: %s, record %d, and %s of a later stage is %s", what, r.Seq, m.name, m.phase)
		}
	}
	for k := range p.stages {
		switch other := &p.stages[k]; {
		case k < n && other.Step != nil && !other.doing.passed, k != n && other.doing.underWay, k > n && other.begun:
			o.violated("invariant 13: %s, record %d, and stage %s is before it and not done, or after it and has begun", what, r.Seq, other.Name)
		}
	}
	o.stepMayBegin(s, what, r, sent)
	o.soaked(n, what, r, sent)
	if s.doing.attempt > 0 {
		o.count("steps that are taken again")
	}
	o.takes(r)
	s.begins(r.Time)
	s.doing.underWay, s.doing.host = true, e.Host
	p.touched = true
}

// stepMayBegin judges that nothing forbids a step to begin that forbids a host to (invariant 3), and that
// it can end in time.
func (o *Oracle) stepMayBegin(s *stage, what string, r message.Decoded, sent time.Time) {
	p := o.run
	switch {
	case p.aborted:
		o.violated("invariant 3: %s, record %d, after an abort", what, r.Seq)
	case p.halted != 0 && o.known(p.halted):
		o.violated("invariant 3: %s, record %d, and record %d stopped the run", what, r.Seq, p.halted)
	case p.paused != 0 && o.known(p.paused):
		o.violated("%s, record %d, and record %d paused the run", what, r.Seq, p.paused)
	case sent.Add(s.Hook().Timeout.Duration()).After(p.notAfter):
		o.violated("invariant 3: %s, record %d, sent at %s, and it may take %s and not-after is %s", what, r.Seq, sent, s.Hook().Timeout.Duration(), p.notAfter)
	case s.Approval && !s.approved:
		o.violated("%s, record %d, and stage %s is not approved", what, r.Seq, s.Name)
	case len(p.policy.Checks.Fleet) > 0 && !p.fleetPassed:
		o.violated("%s, record %d, and the checks of the fleet never passed", what, r.Seq)
	case p.counted() < p.policy.MinPrepared:
		o.violated("%s, record %d, and %d hosts are prepared, of at least %d", what, r.Seq, p.counted(), p.policy.MinPrepared)
	}
	o.notFrozen(what, r, sent)
}

// stepsAllow judges that a host begins after the steps before it, and while none is under way
// (invariant 13).
func (o *Oracle) stepsAllow(m *member, what string, r message.Decoded) {
	for n := range o.run.stages {
		switch s := &o.run.stages[n]; {
		case s.Step == nil:
		case s.doing.underWay:
			o.violated("invariant 13: %s, record %d, and step %s is under way", what, r.Seq, s.Name)
		case n < m.stage && !s.doing.passed:
			o.violated("invariant 13: %s, record %d, and step %s before it is not done", what, r.Seq, s.Name)
		case n > m.stage && s.begun:
			o.violated("invariant 13: %s, record %d, and step %s after it has begun", what, r.Seq, s.Name)
		case n < m.stage:
			o.count("hosts that begin after a step")
		}
	}
}

// stepRan applies the outcome of the step that is under way, and judges that it was done if it says so.
func (o *Oracle) stepRan(t message.Outcome, r message.Decoded) {
	p := o.run
	s := p.stepUnderWay()
	if o.isMadeUp(t) {
		o.violated("invariant 13: step %s of run %d is done by record %d, and nobody has done it", t.Stage, t.Run, r.Seq)
	}
	if s.doing.done {
		o.violated("invariant 13: step %s of run %d is done twice, by record %d", t.Stage, t.Run, r.Seq)
	}
	o.judgeOutputs(t, s, r)
	s.doing.underWay = false
	s.doing.attempt++
	switch {
	case t.OK:
		s.doing.done, s.doing.passed = true, true
		if t.Outputs != nil {
			s.doing.sealed = t.Outputs.Sealed
		}
	case p.policy.OnFailure == rollout.Continue:
		s.doing.passed = true
		o.count("steps that failed and are passed over")
	default:
		p.tooMany(r.Seq)
	}
	if o.neverCame(t) {
		o.count("steps whose outcome never came")
	}
	o.stagesDone(r.Time)
}

// stepsFinished judges that a run does not end while a step is under way, and reports whether all of them
// are done.
func (o *Oracle) stepsFinished(r message.Decoded) (all bool) {
	all = true
	for n := range o.run.stages {
		s := &o.run.stages[n]
		if s.doing.underWay {
			o.violated("invariant 13: run %d ends by record %d while its step %s is under way", o.run.key(), r.Seq, s.Name)
		}
		all = all && (s.Step == nil || s.doing.done)
	}
	return all
}

// StepRuns judges that a step which is run somewhere, now, has begun by the log. undo tells that it is
// undone, which only a rollback asks for.
func (o *Oracle) StepRuns(key message.Key, undo bool) {
	o.count("steps run")
	if undo {
		o.count("steps undone")
	}
	p := o.byID(key.Run)
	if p == nil { // The task is late: a later run is under way.
		o.count("steps run after their run")
		return
	}
	for n := range p.stages {
		s := &p.stages[n]
		if s.Name != key.Stage {
			continue
		}
		switch {
		case s.Undo != undo || undo != (key.Kind == message.Undo):
			o.violated("invariant 13: step %s of run %d is run as %s, undone %t, and the run undoes it: %t", key.Stage, key.Run, key.Kind, undo, s.Undo)
		case !s.doing.underWay && s.doing.attempt == 0, key.Attempt > s.doing.attempt:
			o.violated("invariant 13: step %s of run %d is run for the time %d, and has not begun", key.Stage, key.Run, key.Attempt)
		case !s.doing.underWay || key.Attempt < s.doing.attempt:
			o.count("steps run after their outcome")
		}
	}
}

// isMadeUp reports whether an outcome says that something was done, or has passed, and nobody has done it:
// whoever runs tasks tells how they end, and a byzantine host may lie.
func (o *Oracle) isMadeUp(t message.Outcome) bool {
	return t.OK && o.tasksRun != nil && !o.tasksRun[t.Key()].well && !o.isByzantine(t.Host)
}

// neverCame reports whether an outcome only says that the run waits for it no longer.
func (o *Oracle) neverCame(t message.Outcome) bool {
	return !t.OK && o.tasksRun[t.Key()] == taskRun{}
}

// TaskEnds notes how a step or start checks came out where they were run.
func (o *Oracle) TaskEnds(key message.Key, ok bool) {
	if o.tasksRun == nil {
		o.tasksRun = map[message.Key]taskRun{}
	}
	ran := o.tasksRun[key]
	ran.well, ran.badly = ran.well || ok, ran.badly || !ok
	o.tasksRun[key] = ran
}
