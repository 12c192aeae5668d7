package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Doing is how the step of a stage stands; zero for a stage with hosts.
type Doing struct {
	// Host is the host on which it is or was done last; empty at the site.
	Host string
	// Since is when it began, while it is under way; zero while it is not.
	Since time.Time
	// Attempt counts how often it was begun and has ended.
	Attempt int
	// Trouble is why it failed last; empty once it is done.
	Trouble string
	// Ended is when it ended last, Took how long it took then.
	Ended time.Time
	Took  time.Duration
	// Outputs are its outputs, sealed; nil while it has given none.
	Outputs *message.Outputs
}

// underWay reports whether its outcome is awaited.
func (d *Doing) underWay() bool { return !d.Since.IsZero() }

// kind is what a run does in a stage with a step.
func (g *stage) kind() message.TaskKind {
	if g.Undo {
		return message.Undo
	}
	return message.Step
}

// does names what a run does in a stage with a step.
func (g *stage) does() string {
	if g.Undo {
		return "the undo of step " + g.Name
	}
	return "step " + g.Name
}

// KindOf is what the run does in a stage with a step: the step, or its undo.
func (s *State) KindOf(stage string) message.TaskKind {
	if g := s.stages.named(stage); g != nil {
		return g.kind()
	}
	return message.Step
}

// awaitsStep reports whether the stage has a step that is not done.
func (g *stage) awaitsStep() bool { return g.Step != nil && g.left > 0 }

// stepDone reports whether the stage has a step that is done.
func (g *stage) stepDone() bool { return g.Step != nil && g.left == 0 && g.doing.Trouble == "" }

// isOfSteps reports whether the run has steps to do also if it has no hosts: it ends after a stage,
// goes on where earlier runs have upgraded them, or rolls back runs whose hosts are back already.
func (s *State) isOfSteps() bool {
	return (s.Until != "" || reached.GoesOn(s.Reached) || s.IsRollback()) && slices.ContainsFunc(s.stages.list, func(g stage) bool { return g.awaitsStep() })
}

// noneLeft reports whether nothing is left to begin in the current stage or after it.
func (s *State) noneLeft() bool { return s.counts.unstarted == 0 && !s.stages.current().awaitsStep() }

// needs is how long what begins next takes; 0 if that is not known.
func (s *State) needs() time.Duration {
	if g := s.stages.current(); g.Step != nil {
		return g.Hook().Timeout.Duration()
	}
	return s.durations.usual
}

// beginStep begins the step of the current stage. On a host it waits for one that is present and
// that the step matches.
func (s *State) beginStep(now time.Time, seen *Seen) Decision {
	g := s.stages.current()
	e := message.Begun{Stage: g.Name}
	if g.OnHost() {
		if seen.HostOf != nil {
			e.Host = seen.HostOf(g.Step)
		}
		if e.Host == "" {
			return Decision{Until: s.unblocks(now)}
		}
	}
	return note(e)
}

// begun notes that the step of the current stage begins. From then on the run has touched
// something.
func (s *State) begun(e message.Begun, at time.Time) error {
	g := s.stages.current()
	switch {
	case s.ID == 0 || s.isPreparing() || g.Name != e.Stage || !g.awaitsStep():
		return fmt.Errorf("stage %s of run %d has no step that could begin", e.Stage, s.Key())
	case g.doing.underWay():
		return fmt.Errorf("the step of stage %s has begun already", e.Stage)
	case g.OnHost() != (e.Host != ""):
		return fmt.Errorf("the step of stage %s does not run on host %q", e.Stage, e.Host)
	}
	g.doing.Host, g.doing.Since = e.Host, at
	s.stageBegins(g, at)
	s.counts.underWay++
	s.touched, s.changed = true, at
	return nil
}

// stepTask returns the step that is under way as a task; false when none is.
func (s *State) stepTask() (t message.Task, some bool) {
	if s.Over() || len(s.stages.list) == 0 {
		return t, false
	}
	g := s.stages.current()
	if !g.doing.underWay() {
		return t, false
	}
	t = message.Task{Run: s.ID, Kind: g.kind(), Stage: g.Name, Host: g.doing.Host, Attempt: g.doing.Attempt, Hook: g.Hook()}
	if !g.Undo {
		t.Gives = g.Step.Gives
	}
	return t, true
}

// stepEnds is when the run stops waiting for the step that is under way.
func (s *State) stepEnds(t message.Task) time.Time {
	return s.stages.current().doing.Since.Add(t.Limit())
}

// awaitsStepOf reports whether an outcome is that of the step under way.
func (s *State) awaitsStepOf(o message.Outcome) bool {
	t, underWay := s.stepTask()
	return underWay && t.Key() == o.Key()
}

// stepRan applies the outcome of the step that is under way.
func (s *State) stepRan(o message.Outcome, at time.Time) error {
	if !s.awaitsStepOf(o) {
		return fmt.Errorf("nobody waits for the outcome of step %s %d", o.Stage, o.Attempt)
	}
	g := s.stages.current()
	g.doing.Since, g.doing.Ended, g.doing.Took, g.doing.Trouble = time.Time{}, at, at.Sub(g.doing.Since), ""
	g.doing.Attempt++
	s.counts.underWay--
	s.changed = at
	s.fleet.stale()
	if o.OK {
		g.doing.Outputs = o.Outputs
		if !g.Undo {
			s.stepTimes.add(g.Name, g.doing.Took)
		}
		s.passStep(at)
		return nil
	}
	g.doing.Trouble = cmp.Or(o.Text, "it says nothing")
	if s.rollout.OnFailure == rollout.Continue {
		s.passStep(at)
		return nil
	}
	s.onFailure(g.stepFailure(), at)
	return nil
}

// stepFailure says why the step of the stage failed.
func (g *stage) stepFailure() string {
	return fmt.Sprintf("%s of stage %s failed: %s", g.kind().Words(), g.Name, g.doing.Trouble)
}

// waitingForResume returns what a paused run waits for. A step that failed, and is done again then, is
// named though the run was paused for another reason.
func (s *State) waitingForResume() Waiting {
	w, g := s.Paused.waiting(), s.stages.current()
	if !g.awaitsStep() || g.doing.underWay() || g.doing.Trouble == "" {
		return w
	}
	w.Stage = g.Name
	if failure := g.stepFailure(); s.Paused.Why != message.CleanText(failure) {
		w.Detail += "; since then " + failure
	}
	return w
}

// passStep goes on after the step of the current stage.
func (s *State) passStep(at time.Time) {
	s.stages.current().left = 0
	s.advance(at)
	s.noteLate(at)
}

// stepOverdue returns the event that the step under way has taken longer than its limit, and so has
// failed; nil, and when to look again, if it has not.
func (s *State) stepOverdue(now time.Time) (e message.Event, until time.Time) {
	t, underWay := s.stepTask()
	if !underWay {
		return nil, time.Time{}
	}
	if ends := s.stepEnds(t); now.Before(ends) {
		return nil, ends
	}
	return message.Ran{Outcome: t.Outcome(false, "no outcome within "+window.FormatDuration(t.Limit()))}, time.Time{}
}

// stepUnanswered returns the event that the run ends before the outcome of the step under way has come;
// nil when no step is.
func (s *State) stepUnanswered() message.Event {
	t, underWay := s.stepTask()
	if !underWay {
		return nil
	}
	return message.Ran{Outcome: t.Outcome(false, "no outcome yet: the run ends")}
}

// waitingForStep returns that the run waits for the step of the current stage: for its outcome, or
// for a host on which it can begin.
func (s *State) waitingForStep() (Waiting, bool) {
	g := s.stages.current()
	t, underWay := s.stepTask()
	switch {
	case underWay && t.Host != "":
		return Waiting{What: ForStep, Detail: fmt.Sprintf("%s on %s", g.does(), t.Host), Since: g.doing.Since, Until: s.stepEnds(t), Stage: g.Name, Hosts: []string{t.Host}}, true
	case underWay:
		return Waiting{What: ForStep, Detail: g.does(), Since: g.doing.Since, Until: s.stepEnds(t), Stage: g.Name}, true
	case g.awaitsStep() && g.OnHost():
		return Waiting{What: ForHost, Detail: "a host that step " + g.Name + " matches to be present", Since: s.stepDue(), Stage: g.Name}, true
	}
	return Waiting{}, false
}

// hostPatience is how long a step waits for its host before a person is told: one that is present begins
// it at once.
const hostPatience = time.Minute

// stepDue is since when the step of the current stage could begin, or begin again, if nothing else kept
// it from that.
func (s *State) stepDue() time.Time {
	g := s.stages.current()
	return times.Later(times.Later(s.stages.reached(), g.approvedAt), g.doing.Ended)
}

// lacksHost is from when on a person is told that the step of the current stage waits for a host that it
// matches; zero if it waits for none.
func (s *State) lacksHost() time.Time {
	if g := s.stages.current(); g.awaitsStep() && g.OnHost() && !g.doing.underWay() {
		return s.changed.Add(hostPatience) // Somebody may just have resumed the run.
	}
	return time.Time{}
}

// failedSteps returns the stages whose steps were passed over though they failed, and how many steps
// are done of how many.
func (s *State) failedSteps() (failed []string, done, all int) {
	for n := range s.stages.list {
		g := &s.stages.list[n]
		switch {
		case g.Step == nil:
			continue
		case g.doing.Trouble != "":
			failed = append(failed, g.Name)
		case g.stepDone():
			done++
		}
		all++
	}
	return failed, done, all
}

// Outputs returns the outputs of the steps that are done, those of earlier runs first, in their order. A
// rollback begins with those of the runs that it rolls back. A step that is undone has none any more; those
// of the step whose undo is under way come last, so that it finds them under their names whatever other steps
// have given.
func (s *State) Outputs() []message.StepOutputs {
	all := slices.Clone(s.UndoOutputs)
	if s.Reached != nil && !s.IsRollback() {
		for _, before := range s.Reached.Stages {
			if before.Outputs != nil {
				all = append(all, message.StepOutputs{Stage: before.Name, Outputs: *before.Outputs})
			}
		}
	}
	for i := range s.stages.list {
		g := &s.stages.list[i]
		switch n := slices.IndexFunc(all, func(o message.StepOutputs) bool { return o.Stage == g.Name }); {
		case g.doing.Outputs != nil:
			all = append(all, message.StepOutputs{Stage: g.Name, Outputs: *g.doing.Outputs})
		case !g.Undo || n < 0:
		case g.stepDone():
			all = slices.Delete(all, n, n+1)
		case g.doing.underWay():
			own := all[n]
			all = append(slices.Delete(all, n, n+1), own)
		}
	}
	return all
}

// WayBack is how far a run can be rolled back: until the point of no return has begun.
type WayBack struct {
	// Stage is the stage that is the point of no return; empty when there is none.
	Stage string
	// Closed is when that has begun; zero while there is a way back.
	Closed time.Time
}

// WayBack returns how far the run can be rolled back.
func (s *State) WayBack() (w WayBack) {
	if s.IsRollback() {
		return w
	}
	for n := range s.stages.list {
		if g := &s.stages.list[n]; g.PointOfNoReturn {
			w.Stage, w.Closed = g.Name, s.closedAt
		}
	}
	if stage, at := s.Reached.Closed(); !at.IsZero() {
		w.Stage, w.Closed = stage, at
	}
	return w
}

// closeStep notes that the run ends while its step is under way.
func (s *State) closeStep() {
	for n := range s.stages.list {
		if g := &s.stages.list[n]; g.doing.underWay() {
			g.doing.Since, g.doing.Trouble = time.Time{}, "the run ended before its outcome"
			s.counts.underWay--
		}
	}
}
