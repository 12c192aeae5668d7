package controller

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

const (
	// mostMissed is how many windows are written down as missed at once: the
	// last ones.
	mostMissed = 10
	// longestAbsence bounds how far a controller looks back.
	longestAbsence = 366 * day
)

// missed returns the event of a window that has closed without a run, the
// oldest one first; false when there is none.
func (s *state) missed(now time.Time) (message.Event, bool) {
	if s.config == nil || len(s.hosts) == 0 || s.scheduledAt.IsZero() {
		return message.Event{}, false
	}
	if now.Before(s.lookBackAt) {
		return message.Event{}, false
	}
	considered := s.ledger.Considered()
	if considered.After(now) { // It was, by a clock that was ahead; setBack notes when that ended.
		considered = s.started
	}
	since := later(later(considered.Add(1), s.scheduledAt), now.Add(-longestAbsence))
	closed := s.closed(since, now)
	if len(closed) == 0 {
		s.lookBackAt = now.Add(day)
		if next, found := s.nextOpening(now); found {
			s.lookBackAt = next.End
		}
		return message.Event{}, false
	}
	o := closed[0]
	return message.Event{Event: message.Missed, Window: &o.Start, NotAfter: &o.End, Reason: s.whyMissed(o)}, true
}

// closed returns the last windows that opened from an instant on and have
// closed by now.
func (s *state) closed(since, now time.Time) []window.Opening {
	var closed []window.Opening
	for o := range s.schedule.Ahead(since, now, 0) {
		if o.Start.Before(since) || o.End.After(now) {
			continue
		}
		if closed = append(closed, o); len(closed) > mostMissed {
			closed = closed[1:]
		}
	}
	return closed
}

func (s *state) whyMissed(o window.Opening) string {
	switch {
	case !o.End.After(s.started):
		return "the agent was not running"
	case s.idle.What != "" && !s.idle.Since.Before(stamp(o.Start)):
		return "it was waiting for " + s.idle.Detail
	}
	return "no run could be opened while it was open"
}

// lastMissed is the window that was missed last, for people.
func (s *state) lastMissed() *v1.MissedWindow {
	m := s.ledger.Missed()
	if m == nil {
		return nil
	}
	return &v1.MissedWindow{Start: stamp(m.Start), End: stamp(m.End), Reason: m.Reason}
}
