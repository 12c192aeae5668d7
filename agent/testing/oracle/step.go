package oracle

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// doing is how the step of a stage stands; zero before it begins.
type doing struct {
	// underWay means that it has begun and its outcome has not come.
	underWay bool
	// over means that the run goes on after it, done that it succeeded.
	over, done bool
	host       string
	// ended counts the outcomes.
	ended int
}

// stepRun is how a step came out where it was run: well, badly, or both after one another.
type stepRun struct{ well, badly bool }

// stepLeft reports whether a stage has a step after which the run has yet to go on.
func (s *stage) stepLeft() bool { return s.Step != nil && !s.doing.over }

// stepBegins reports whether the event that a step begins has an effect: it is the step of the
// current stage, and not under way.
func (p *run) stepBegins(e message.Begun) bool {
	s := &p.stages[p.current()]
	return p.id != 0 && p.allPrepared && s.Name == e.Stage && s.stepLeft() && !s.doing.underWay && (s.Step.Do.On != rollout.OnSite) == (e.Host != "")
}

// stepEnds reports whether an outcome is that of the step under way.
func (p *run) stepEnds(t message.Outcome) bool {
	s := &p.stages[p.current()]
	return s.Name == t.Stage && s.doing.underWay && s.doing.host == t.Host && s.doing.ended == t.Attempt
}

// stepBegun judges and applies that the step of the current stage begins.
func (o *Oracle) stepBegun(r message.Decoded, e message.Begun, sent time.Time) {
	p, n := o.run, o.run.current()
	s := &p.stages[n]
	what := "the step of stage " + s.Name
	o.mayGoOn(s, what, r, sent)
	for _, m := range p.members {
		switch {
		case m.stage < n && m.left():
			o.violated("invariant 13: %s begins by record %d, and %s of an earlier stage is %s", what, r.Seq, m.name, m.phase)
		case m.stage > n && (m.phase == checking || m.phase == checked || !m.tookAt.IsZero()):
			o.violated("invariant 13: %s begins by record %d, and %s of a later stage is %s", what, r.Seq, m.name, m.phase)
		}
	}
	for k := range p.stages {
		if other := &p.stages[k]; k != n && other.doing.underWay || k > n && other.begun {
			o.violated("invariant 13: %s begins by record %d, and stage %s is under way or after it", what, r.Seq, other.Name)
		}
	}
	if limit := s.Step.Do.Timeout.Duration(); sent.Add(limit).After(p.notAfter) {
		o.violated("invariant 3: %s begins by record %d, sent at %s, and may take %s, and not-after is %s", what, r.Seq, sent, limit, p.notAfter)
	}
	o.enoughPrepared(what, r)
	o.soakedBefore(n, what, r, sent)
	o.takes(r)
	o.count("steps that begin")
	if s.doing.ended > 0 {
		o.count("steps that are taken again")
	}
	s.begun, p.touched = true, true
	s.doing.underWay, s.doing.host = true, e.Host
}

// stepRan applies the outcome of the step under way, and judges that somebody has done what is told to
// be done.
func (o *Oracle) stepRan(t message.Outcome, r message.Decoded) {
	s := &o.run.stages[o.run.current()]
	ran := o.stepsRun[message.Key{Run: t.Run, Kind: t.Kind, Host: t.Host, Stage: t.Stage, Attempt: t.Attempt}]
	switch {
	case o.stepsRun == nil: // Nobody tells what was run.
	case t.OK && !ran.well:
		o.violated("invariant 13: step %s of run %d is done by record %d, and nobody has done it", t.Stage, t.Run, r.Seq)
	case !t.OK && !ran.badly:
		o.count("steps whose outcome never came")
	}
	s.doing.underWay = false
	s.doing.ended++
	switch {
	case t.OK:
		s.doing.over, s.doing.done = true, true
	case o.run.policy.OnFailure == rollout.Continue:
		s.doing.over = true
		o.count("steps that failed and are passed over")
	default:
		o.run.tooMany(r.Seq)
	}
	o.stagesDone(r.Time)
}

// stepsBefore judges that the steps of the stages before a host's own are over, that those of stages
// after it have not begun, and that none is under way (invariant 13).
func (o *Oracle) stepsBefore(m *member, what string, r message.Decoded) {
	for n := range o.run.stages {
		switch s := &o.run.stages[n]; {
		case s.Step == nil:
		case n < m.stage && s.stepLeft(), s.doing.underWay:
			o.violated("invariant 13: %s, record %d, and the step of stage %s is not over", what, r.Seq, s.Name)
		case n > m.stage && s.begun:
			o.violated("invariant 13: %s, record %d, and the step of stage %s has begun", what, r.Seq, s.Name)
		case n < m.stage:
			o.count("hosts that begin after a step")
		}
	}
}

// checkSteps judges the end of a run: no step is under way, and each is done if it has completed.
func (o *Oracle) checkSteps(e message.Finished) {
	for n := range o.run.stages {
		switch s := &o.run.stages[n]; {
		case s.doing.underWay:
			o.violated("invariant 13: run %d ends while the step of stage %s is under way", o.run.id, s.Name)
		case s.Step != nil && !s.doing.done && e.Result == "completed":
			o.violated("run %d ends as completed, and the step of stage %s is not done", o.run.id, s.Name)
		}
	}
}

// StepRuns judges that a step which is run somewhere now has begun by the log. undo tells that it is taken
// back, which nobody asks for.
func (o *Oracle) StepRuns(key message.Key, undo bool) {
	o.count("steps run")
	if undo {
		o.violated("invariant 13: the step of stage %s of run %d is undone, and nobody has asked for that", key.Stage, key.Run)
	}
	p := o.byID(key.Run)
	if p == nil { // The task is late: a later run is under way.
		o.count("steps run after their run")
		return
	}
	for n := range p.stages {
		switch s := &p.stages[n]; {
		case s.Name != key.Stage:
		case key.Attempt > s.doing.ended, key.Attempt == s.doing.ended && !s.doing.underWay:
			o.violated("invariant 13: the step of stage %s of run %d is run as attempt %d, which has not begun", key.Stage, key.Run, key.Attempt)
		case key.Attempt < s.doing.ended:
			o.count("steps run after their outcome")
		}
	}
}

// StepEnds notes how a step came out where it was run.
func (o *Oracle) StepEnds(key message.Key, ok bool) {
	if o.stepsRun == nil {
		o.stepsRun = map[message.Key]stepRun{}
	}
	ran := o.stepsRun[key]
	o.stepsRun[key] = stepRun{ran.well || ok, ran.badly || !ok}
}
