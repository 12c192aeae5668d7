package controller

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// predecessors returns which runs of other environments a run that is opened now follows, or what it
// waits for. An environment that is not declared cannot be followed: nobody knows whether all its hosts
// are upgraded.
func (s *state) predecessors(env *environment, now time.Time, again bool) run.Predecessors {
	order, some := s.intent.orderOf(env.name)
	if !some {
		return run.Predecessors{}
	}
	for _, name := range order.Environments {
		if !s.isDeclared(name) {
			return run.Predecessors{Waits: fmt.Sprintf("somebody to declare environment %s, or to remove it from after: %s", nameOf(name), run.Command("edit environment/"+env.name))}
		}
	}
	return s.ledger.Predecessors(env.name, order, now, again)
}

// mayFollow refuses a start that the order of environments forbids, unless the request overrides the
// order, and notes which runs the new run follows. A run of chosen hosts follows none, so that the
// next run of all hosts can.
func (s *state) mayFollow(env *environment, now time.Time, request v1.Start, e *message.Opened) error {
	before := s.predecessors(env, now, request.RetryOf != 0)
	switch {
	case before.Waits == "" && !e.Chosen:
		e.Follows = before.Follows
		return nil
	case before.Waits != "" && request.OverrideAfter == "":
		flags := "--override-after …"
		if request.OverrideWindow {
			flags = "--override-window " + flags
		}
		return &run.Refused{Message: fmt.Sprintf("environment %s waits for %s; to start now: %s", nameOf(env.name), before.Waits, startAnyway(request, flags))}
	case before.Waits != "":
		e.OverrideAfter = request.OverrideAfter
	}
	e.Follows = env.ledger.Follows()
	if e.Chosen {
		e.Follows = env.ledger.FollowsOfChosen()
	}
	return nil
}

// wakeDeclared wakes an environment that is declared anew, and those that come after it.
func (s *state) wakeDeclared(name string) {
	if env := s.environments[name]; env != nil {
		env.rouse()
	}
	for _, name := range s.intent.followers()[name] {
		s.environment(name).rouse()
	}
}

// wakeFollowers wakes the environments that come after another one, once a run of that one was
// opened or has ended.
func (s *state) wakeFollowers(of *run.Environment) {
	if current := of.Current(); current != nil && current.Key() != s.ledger.LastSeq {
		return
	}
	for _, name := range s.intent.followers()[of.Name] {
		s.environment(name).rouse()
	}
}
