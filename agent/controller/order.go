package controller

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// standing returns whether a run of an environment may be opened by the order of environments. An
// environment that is not declared cannot be followed: nobody knows whether its hosts are all
// upgraded.
func (s *state) standing(env *environment, now time.Time, again bool) run.Standing {
	order, some := s.intent.orderOf(env.name)
	if !some {
		return run.Standing{}
	}
	for _, name := range order.Environments {
		if !s.isDeclared(name) {
			return run.Standing{Waits: fmt.Sprintf("somebody to declare environment %s, or to remove it from after: %s", nameOf(name), run.Command("edit environment/"+env.name))}
		}
	}
	return s.ledger.Standing(env.name, order, now, again)
}

// mayFollow refuses a start that the order of environments forbids, unless whoever starts the run
// overrides it, and notes which runs it follows. A run of chosen hosts follows none: the next run of
// all hosts does.
func (s *state) mayFollow(env *environment, now time.Time, request v1.Start, e *message.Opened) error {
	standing := s.standing(env, now, request.RetryOf != 0)
	switch {
	case standing.Waits == "" && !e.Chosen:
		e.Follows = standing.Follows
		return nil
	case standing.Waits != "" && request.OverrideAfter == "":
		flags := "--override-after …"
		if request.OverrideWindow {
			flags = "--override-window " + flags
		}
		return &run.Refused{Message: fmt.Sprintf("environment %s waits for %s; to start now: %s", nameOf(env.name), standing.Waits, startAnyway(request, flags))}
	case standing.Waits != "":
		e.OverrideAfter = request.OverrideAfter
	}
	e.Follows = env.ledger.Follows()
	if e.Chosen {
		e.Follows = env.ledger.FollowsOfChosen()
	}
	return nil
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
