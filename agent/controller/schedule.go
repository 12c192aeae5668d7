package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// setCalendar takes in one of the tenant's calendars. While one cannot be read
// no window is open and no run goes on: it may be a freeze.
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
		s.Logger.Error("a calendar cannot be used; no window is open and no run goes on", "tenant", s.Tenant, "calendar", seen.Name, "error", err)
	}
	s.reschedule(seen.At)
	s.calendarRevision = max(s.calendarRevision, seen.Number)
	s.changed()
}

// CalendarsSeen returns once the revision of a number of a calendar, or a later
// one, counts.
func (c *Controller) CalendarsSeen(ctx context.Context, number uint64) error {
	return c.reached(ctx, number, func(s *state) uint64 { return s.calendarRevision })
}

func (c *Controller) watchCalendars(ctx context.Context) error {
	return c.o.Store.WatchCalendars(ctx, c.o.Tenant, func(seen store.SeenCalendar) {
		_ = c.post(ctx, func(s *state) { s.setCalendar(seen) })
	})
}

// reschedule adds windows and calendars up anew. at is when what has changed
// was written: windows before that were not these.
func (s *state) reschedule(at time.Time) {
	s.scheduledAt, s.lookBackAt = later(s.scheduledAt, at), time.Time{}
	s.ahead, s.after, s.freezing = outlook[window.Opening]{}, outlook[window.Opening]{}, outlook[window.Freeze]{}
	var calendars []*calendar.Calendar
	for _, name := range slices.Sorted(maps.Keys(s.calendars)) {
		calendars = append(calendars, s.calendars[name])
	}
	s.schedule = v1.Plan(s.windows, calendars, s.Zone)
	if s.unreadable() != nil || s.config == nil { // A freeze that can be read is one all the same.
		s.schedule.Windows, s.schedule.Allow = nil, nil
	}
}

// unreadable returns what of all that decides when a run may be under way
// cannot be read, and what to do; nil when all can.
func (s *state) unreadable() error {
	var all []string
	if s.configErr != nil {
		all = append(all, fmt.Sprintf("the configuration cannot be read: %v; write it anew", s.configErr))
	}
	for _, name := range slices.Sorted(maps.Keys(s.calendarErrs)) {
		all = append(all, fmt.Sprintf("calendar %s cannot be read: %v; write it anew or delete it", name, s.calendarErrs[name]))
	}
	if len(all) == 0 {
		return nil
	}
	return errors.New(strings.Join(all, ", and "))
}

// Windows returns the openings that overlap the time between two instants: at
// most so many, or all if the count is 0.
func (c *Controller) Windows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error) {
	plan, err := ask(ctx, c, func(s *state) window.Schedule { return s.schedule })
	if err != nil {
		return nil, err
	}
	// A plan does not change, and to look far ahead takes its time.
	return v1.WindowsUntil(ctx, plan, from, to, count)
}

// outlook caches the opening or freeze that is in force or comes next, as seen
// from any time between from and until: to search the schedule takes time.
type outlook[T any] struct {
	from, until time.Time
	next        T
	found       bool
}

// look returns what find finds from now on, and searches again only when the
// cached answer does not hold at now. end is the end of what was found.
//
// It compares by the wall clock alone. Compared by the monotonic clock, an
// answer for a clock that is days ahead would hold until that date came, also
// after the clock was corrected, and no window before it had its run (issue 11).
func (o *outlook[T]) look(now time.Time, find func(time.Time) (T, bool), end func(T) time.Time) (T, bool) {
	now = now.Round(0)
	if now.Before(o.from) || !now.Before(o.until) {
		o.next, o.found = find(now)
		if o.from, o.until = now, end(o.next); !o.found {
			o.until = now.Add(day)
		}
	}
	return o.next, o.found
}

func endOfOpening(o window.Opening) time.Time { return o.End }

// nextOpening returns the window that is open or opens next.
func (s *state) nextOpening(now time.Time) (window.Opening, bool) {
	return s.ahead.look(now, s.schedule.Next, endOfOpening)
}

// nextUpgrade returns the window that gets a run next: the one that is open
// until its run has ended, then the one after it.
func (s *state) nextUpgrade(now time.Time) (window.Opening, bool) {
	next, found := s.nextOpening(now)
	if found && next.Contains(now) && s.ledger.Current() == nil && hadRun(s.facts(now, next.Span)) {
		return s.after.look(next.End, s.schedule.Next, endOfOpening)
	}
	return next, found
}

const day = 24 * time.Hour
