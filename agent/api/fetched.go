package api

import (
	"errors"
	"net/http"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// calendarCopies returns what was fetched of the tenant's calendars, by name.
func (s *server) calendarCopies(c *call) (map[string]*v1.CalendarCopy, error) {
	all, err := s.Store.CalendarCopies(c.Context(), c.tenant)
	copies := map[string]*v1.CalendarCopy{}
	for i := range all {
		copies[all[i].Name] = &all[i].Value
	}
	return copies, err
}

// getCalendarStates lists what was fetched of the calendars with a URL, without their events.
func (s *server) getCalendarStates(c *call) error {
	all, err := s.Store.Calendars(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	copies, err := s.calendarCopies(c)
	if err != nil {
		return err
	}
	states := []v1.CalendarState{}
	for _, named := range all {
		if named.Value.URL != "" {
			state := copies[named.Name].State(named.Name, named.Value)
			state.Events = nil
			states = append(states, state)
		}
	}
	return sendList(s, c, states, func(state v1.CalendarState) string { return state.Name })
}

// getCalendarState sends what was fetched of a calendar, with its events.
func (s *server) getCalendarState(c *call) error {
	declared, _, err := s.fetchedCalendar(c)
	if err != nil {
		return err
	}
	return s.sendCalendarState(c, declared)
}

// refreshCalendar fetches a calendar now, and sends what came of it.
func (s *server) refreshCalendar(c *call) error {
	declared, revision, err := s.fetchedCalendar(c)
	if err != nil {
		return err
	}
	if s.Calendars == nil {
		return problem(http.StatusServiceUnavailable, "", "", "calendars are fetched only while the site runs; start it")
	}
	switch err := s.Calendars.Refresh(c.Context(), c.tenant, c.PathValue("name"), revision.Number); {
	case errors.Is(err, store.ErrNotFound):
		return noURL(c)
	case err != nil:
		return problem(http.StatusServiceUnavailable, "", "", "cannot fetch calendar %s: %v", c.PathValue("name"), err)
	}
	return s.sendCalendarState(c, declared)
}

// fetchedCalendar returns the calendar with the name in the path, which has a URL.
func (s *server) fetchedCalendar(c *call) (v1.Calendar, store.Revision, error) {
	o, err := s.calendar(c)
	if err != nil {
		return v1.Calendar{}, store.Revision{}, err
	}
	now, err := o.stored(c.Context(), c.tenant)
	switch {
	case err != nil:
	case !now.exists:
		err = o.missing(c)
	case now.damaged != nil:
		err = o.unreadable(now)
	case now.value.Value.URL == "":
		err = noURL(c)
	}
	return now.value.Value, now.revision, err
}

func noURL(c *call) error {
	name := c.PathValue("name")
	return missing("calendar "+name, "calendar %s of tenant %q has no url, so the site does not fetch it", name, c.tenant)
}

func (s *server) sendCalendarState(c *call, declared v1.Calendar) error {
	name := c.PathValue("name")
	kept, _, err := s.Store.CalendarCopy(c.Context(), c.tenant, name)
	switch {
	case err == nil:
		return s.sendFields(c, kept.State(name, declared))
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrDamaged): // It is fetched anew.
		return s.sendFields(c, (*v1.CalendarCopy)(nil).State(name, declared))
	}
	return err
}
