package v1

import (
	"reflect"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
)

// This file tells the changes that can only hold runs from all others: those that pause runs or close
// windows. They are possible while a run freezes changes.

// OnlyPauses reports whether nothing of a rollout changes but whether runs are paused.
func OnlyPauses(was, next Rollout) bool {
	next.Paused = was.Paused
	return SameRollout(was, next)
}

// OnlyPausesEnvironment is OnlyPauses for an environment with a rollout of its own.
func OnlyPausesEnvironment(was, next Environment) bool {
	if was.Rollout == nil || next.Rollout == nil || !OnlyPauses(*was.Rollout, *next.Rollout) {
		return false
	}
	next.Rollout = was.Rollout
	return SameEnvironment(was, next)
}

// Freezes reports whether a calendar closes.
func (c Calendar) Freezes() bool { return c.Kind == string(calendar.Freeze) }

// OnlyFreezes reports whether nothing of a calendar changes but that a freeze gets further events.
func OnlyFreezes(was, next Calendar) bool {
	was, next = was.Canonical(), next.Canonical()
	for _, event := range was.Events {
		if !slices.ContainsFunc(next.Events, func(other Event) bool { return reflect.DeepEqual(other, event) }) {
			return false
		}
	}
	next.Events = was.Events
	return next.Freezes() && SameCalendar(was, next)
}
