package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/news"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// environment is what the state keeps of one environment: hosts that are upgraded together, by
// one run at a time. The runs of several environments go side by side, so whatever is about the
// newest run is here, and is passed to what works on it.
type environment struct {
	// name is empty for default, which has all hosts that no other environment has.
	name string
	turn
	// ledger is what the log says of it.
	ledger *run.Environment
	// since is the record from which on the log tells all of it; 0 when it tells nothing.
	since uint64
	// followers follow the run that the record followed has opened: story is what has
	// happened in it, teller knows what was told of it, traces are its spans.
	followers []follower
	followed  uint64
	story     *view.Story
	teller    *news.Teller
	traces    *traces
	// tasks are those of its run.
	tasks *dispatcher
	// gathered tells that enough was heard of its hosts to go on with a run.
	gathered bool
	// unreported are the hosts of which its newest run may not know whether they are online.
	unreported map[string]bool

	// endSeen is when the newest run was seen to end, by the monotonic clock; zero when it
	// has not ended, or ended before the session began.
	endSeen time.Time
	// archiveAt is when the run that ended last is to be written to the history again,
	// because it has changed since; zero when it has not.
	archiveAt time.Time
	// opensFrom is when the next run may be opened after an opening that the log took and that
	// counts for nothing: another controller knew more. Else one would follow the other at once.
	opensFrom time.Time
	// asks are the disruption budgets whose queries a run waits for, asksOf the run.
	asks   []string
	asksOf *run.State
	// compared are the plans of the hosts of its run; nil if they are not compared.
	compared *comparison
	// back is what the next window rolls back.
	back windowRollback
	// idle is why an open window has no run, for people, and rests why it needs none.
	idle  v1.WaitingFor
	rests rest
	// goal is the release to which its hosts go, toldGoal the digest of that which they were told.
	goal     goal
	toldGoal string
	// shown is the newest run as it was shown last.
	shown shown
	// forecast is that of the newest run that was shown.
	forecast forecast
}

// defaultName is the name of the environment of all hosts that no other has.
const defaultName = ""

// nameOf is the name of an environment for people.
func nameOf(environment string) string { return cmp.Or(environment, v1.DefaultEnvironment) }

// onLog is the name on the log of an environment that people have named.
func onLog(name string) string {
	if name == v1.DefaultEnvironment {
		return defaultName
	}
	return name
}

// newEnvironment makes an environment that has had no run.
func (s *state) newEnvironment(name string) *environment {
	e := &environment{name: name, ledger: s.ledger.Of(name), unreported: map[string]bool{}}
	e.at = e.ledger.Turn()
	e.rouse()
	e.tasks = s.dispatching.dispatcher(name, func() { s.stale = true; e.rouse() })
	s.followRun(e, 0)
	return e
}

// environment returns the environment of a name on the log.
func (s *state) environment(name string) *environment {
	env := s.environments[name]
	if env == nil {
		env = s.newEnvironment(name)
		s.environments[name] = env
		at, _ := slices.BinarySearchFunc(s.inOrder, name, byName)
		s.inOrder = slices.Insert(s.inOrder, at, env)
	}
	return env
}

func byName(e *environment, name string) int { return cmp.Compare(e.name, name) }

// declareAll has an environment for each that is declared, and none for what is neither declared nor
// on the log.
func (s *state) declareAll() {
	for name := range s.intent.environments {
		s.environment(name)
	}
	for _, env := range slices.Clone(s.inOrder) {
		s.declare(env.name)
	}
}

// declare has an environment of a name if it is declared, and none if it is neither declared nor on the log.
func (s *state) declare(name string) {
	if s.isDeclared(name) {
		s.environment(name)
		return
	}
	if env := s.environments[name]; env != nil && env.since == 0 {
		delete(s.environments, name)
		s.inOrder = slices.DeleteFunc(s.inOrder, func(e *environment) bool { return e == env })
	}
}

// isDeclared reports whether there is an environment whatever the log says.
func (s *state) isDeclared(name string) bool {
	return name == defaultName || s.intent.environments[name] != nil
}

// last returns the environment whose newest run the last record is of; nil if it is of none.
func (s *state) last() *environment {
	of := s.ledger.Last()
	if of == nil || of.Newest() == nil {
		return nil
	}
	return s.environment(of.Name)
}

// touched takes up what the last record has changed of environments.
func (s *state) touched() {
	for _, of := range s.ledger.Touched() {
		env := s.environment(of.Name)
		env.ledger, env.at = of, of.Turn()
		env.goal.current = env.goal.current && env.goal.goesOn == env.goesOn()
		env.rouse()
		s.wakeFollowers(of)
	}
}

// standard returns the environment of all hosts that no other has.
func (s *state) standard() *environment { return s.environments[defaultName] }

// alone reports whether there is no environment but default.
func (s *state) alone() bool { return len(s.environments) == 1 }

// followClock forgets all that was computed from a clock that was set since.
func (e *environment) followClock() {
	e.forecast, e.goal.current, e.back.again = forecast{}, false, time.Time{}
	e.notIdle()
}

// notIdle notes that no window is open, or that its run is opened.
func (e *environment) notIdle() { e.idle, e.rests = v1.WaitingFor{}, rest{} }

// setBack adjusts the times that were set by a clock that has been set back.
func (e *environment) setBack(now time.Time) {
	e.opensFrom = time.Time{}
	if !e.archiveAt.IsZero() {
		e.archiveAt = now
	}
}

// compareAll has the next decision compare the silence of all hosts, as the roster
// knows it, with what was heard of them.
func (e *environment) compareAll() {
	for _, name := range e.ledger.Roster().Watched() {
		e.unreported[name] = true
	}
}

// strangers returns the unreported hosts that are silent and that no run of their own notices, so that
// this run has to count them.
func (e *environment) strangers(h *hosts, ledger *run.Ledger) (silent []string) {
	for name := range e.unreported {
		if _, deleted := h.deleted[name]; !deleted && !h.present.online(name) && ledger.Unwatched(name) {
			silent = append(silent, name)
		}
	}
	return silent
}

// news returns the hosts that are silent, or heard of, and of which the newest run does
// not know that. It lets go of those that it knows of, and keeps the neighbours that it has to be
// told of.
func (e *environment) news(h *hosts, neighbours map[string][]message.Cell) (silent, heard []string) {
	if len(e.unreported) == 0 {
		return nil, nil
	}
	for name := range e.unreported {
		_, deleted := h.deleted[name]
		switch online := h.present.online(name); {
		case neighbours[name] != nil:
		case deleted && !online || !e.ledger.Outdated(name, !online):
			delete(e.unreported, name)
		case online:
			heard = append(heard, name)
		default:
			silent = append(silent, name)
		}
	}
	if len(e.unreported) == 0 { // To walk a map costs as much as it once held.
		e.unreported = map[string]bool{}
	}
	return silent, heard
}

// anyUnheard reports whether a host that the run under way counts as heard of was not heard
// of so far.
func (e *environment) anyUnheard(current *run.State, h *hosts) bool {
	for name := range e.unreported {
		if _, deleted := h.deleted[name]; !deleted && !h.present.online(name) && current.Outdated(name, true) {
			return true
		}
	}
	return false
}
