package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// setCalendar takes in one of the tenant's calendars. While one cannot be read
// no window is open: it may be a freeze.
func (s *state) setCalendar(seen store.SeenCalendar) {
	if seen.Name == "" { // The end of those that were there at the start.
		s.calendarsSeen = true
		s.learnt()
		s.changed()
		return
	}
	delete(s.calendars, seen.Name)
	delete(s.calendarErrs, seen.Name)
	err := seen.Err
	if err == nil && seen.Value != nil {
		parsed, wrong := seen.Value.Parse(seen.Name)
		if len(wrong) > 0 {
			err = wrong
		} else {
			s.calendars[seen.Name] = parsed
		}
	}
	if err != nil {
		s.calendarErrs[seen.Name] = err
		s.Logger.Error("a calendar cannot be used; no window is open", "tenant", s.Tenant, "calendar", seen.Name, "error", err)
	}
	s.reschedule(seen.At)
	s.calendarRevision.reach(seen.Number)
	s.changed()
}

// CalendarsSeen returns once the revision of a number of a calendar, or a later
// one, counts.
func (c *Controller) CalendarsSeen(ctx context.Context, number uint64) error {
	return c.until(ctx, func(s *state) *mark { return &s.calendarRevision }, number)
}

func (c *Controller) watchCalendars(ctx context.Context) error {
	return c.o.Store.WatchCalendars(ctx, c.o.Tenant, func(seen store.SeenCalendar) {
		_ = c.post(ctx, func(s *state) { s.setCalendar(seen) })
	})
}

// reschedule adds windows and calendars up anew. at is when what has changed
// was written: windows before that were not these.
func (s *state) reschedule(at time.Time) {
	s.scheduledAt, s.lookBackAt, s.ahead, s.freezing = later(s.scheduledAt, at), time.Time{}, outlook{}, outlook{}
	s.schedule = window.Plan{Site: s.Zone}
	if s.configErr != nil || len(s.calendarErrs) > 0 || s.config == nil {
		return
	}
	var calendars []*calendar.Calendar
	for _, name := range slices.Sorted(maps.Keys(s.calendars)) {
		calendars = append(calendars, s.calendars[name])
	}
	s.schedule = v1.Plan(s.windows, calendars, s.Zone)
}

// Windows returns the openings that overlap the time between two instants: at
// most so many, or all if the count is 0.
func (c *Controller) Windows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error) {
	plan, err := ask(ctx, c, func(s *state) window.Plan { return s.schedule })
	if err != nil {
		return nil, err
	}
	// A plan does not change, and to look far ahead takes its time.
	return v1.WindowsUntil(ctx, plan, from, to, count)
}

// outlook is the opening that is on or comes next, as seen from any time
// between from and until: to look ahead takes its time.
type outlook struct {
	from, until time.Time
	opening     window.Opening
	found       bool
}

// look returns the opening of a plan that is on or comes next; false when none
// comes.
func (o *outlook) look(plan window.Plan, now time.Time) (window.Opening, bool) {
	if now.Before(o.from) || !now.Before(o.until) {
		o.opening, o.found = plan.Next(now)
		if o.from, o.until = now, o.opening.End; !o.found {
			o.until = now.Add(day)
		}
	}
	return o.opening, o.found
}

// nextOpening returns the window that is open or opens next.
func (s *state) nextOpening(now time.Time) (window.Opening, bool) {
	return s.ahead.look(s.schedule, now)
}

// nextFreeze returns the freeze that is on or comes next. Freezes that overlap
// or touch are one.
func (s *state) nextFreeze(now time.Time) (window.Opening, bool) {
	return s.freezing.look(window.Plan{Allow: s.schedule.Freezes, Site: s.schedule.Site}, now)
}

const day = 24 * time.Hour

// freezeName is what people know a freeze by.
func freezeName(o window.Opening) string {
	if len(o.Open) == 0 {
		return "without a name"
	}
	name := o.Open[0].Source.Calendar
	if summary := o.Open[0].Source.Summary; summary != "" {
		name += " (" + summary + ")"
	}
	return name
}

// freezes returns the event that has the run under way end with the next
// freeze, if that begins before its not-after.
func (s *state) freezes(current *run.State) (message.Event, bool) {
	if s.config == nil {
		return message.Event{}, false
	}
	now := s.Now()
	freeze, found := s.nextFreeze(now)
	if !found || !freeze.Start.Before(current.NotAfter) {
		return message.Event{}, false
	}
	at := later(freeze.Start, current.OpenedAt)
	if !at.Before(current.NotAfter) {
		return message.Event{}, false
	}
	return message.Event{Event: message.Frozen, NotAfter: &at, Reason: message.CleanText(freezeName(freeze))}, true
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
