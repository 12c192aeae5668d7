package controller

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// nextFreeze returns the freeze that is in force or comes next. Freezes that
// overlap or touch are one.
func (s *state) nextFreeze(now time.Time) (window.Freeze, bool) {
	return s.freezing.look(now, s.schedule.NextFreeze, func(f window.Freeze) time.Time { return f.End })
}

// freezeName is the calendar and the event of a freeze, for people.
func freezeName(f window.Freeze) string {
	if summary := f.First.Origin.Summary; summary != "" {
		return f.First.Origin.Calendar + " (" + summary + ")"
	}
	return f.First.Origin.Calendar
}

// freezes returns the event that has the run under way end with the freeze that
// is on or comes next, if that begins before its not-after. The run has the last
// word: the event bears the log's own time, and changes nothing when the freeze
// is over by that.
func (s *state) freezes(current *run.State) (message.Event, bool) {
	freeze, found := s.nextFreeze(s.clock.forFreezes(s.Now()))
	if !found || !freeze.Start.Before(current.NotAfter) {
		return message.Event{}, false
	}
	return message.Event{
		Event: message.Frozen, NotAfter: &freeze.Start, Until: &freeze.End, Reason: message.CleanText(freezeName(freeze)),
	}, true
}

// frozen refuses a start in a freeze, which wins over whoever starts, and cuts
// a run that would reach into the next one.
func (s *state) frozen(now time.Time, e *message.Event) error {
	freeze, found := s.nextFreeze(now)
	switch {
	case found && freeze.Contains(now):
		return &run.Refused{Message: fmt.Sprintf("freeze %s is on until %s, and wins over every window and every start; change or delete its calendar to start now",
			freezeName(freeze), freeze.End.UTC().Format(time.RFC3339))}
	case found && freeze.Start.Before(*e.NotAfter):
		e.NotAfter = &freeze.Start
	}
	return nil
}
