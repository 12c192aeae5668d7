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
	o.enoughPrepared(what, r)
	o.soakedBefore(n, what, r, sent)
	o.takes(r)
	o.count("steps that begin")
	s.begun, p.touched = true, true
	s.doing.underWay, s.doing.host = true, e.Host
}

// stepRan applies the outcome of the step under way.
func (o *Oracle) stepRan(t message.Outcome, r message.Decoded) {
	s := &o.run.stages[o.run.current()]
	s.doing.underWay = false
	s.doing.ended++
	switch {
	case t.OK:
		s.doing.over, s.doing.done = true, true
	case o.run.policy.OnFailure == rollout.Continue:
		s.doing.over = true
	default:
		o.run.tooMany(r.Seq)
	}
	o.stagesDone(r.Time)
}

// stepsBefore judges that the steps of the stages before a host's own are over, and that none is
// under way (invariant 13).
func (o *Oracle) stepsBefore(m *member, what string, r message.Decoded) {
	for n := range o.run.stages {
		s := &o.run.stages[n]
		if n < m.stage && s.stepLeft() || s.doing.underWay {
			o.violated("invariant 13: %s, record %d, and the step of stage %s is not over", what, r.Seq, s.Name)
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
