package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// intent is what people have declared for a tenant, as far as it was read: its
// configuration, its calendars and its rollout. What cannot be read may have
// been meant to forbid something: while the configuration or a calendar cannot
// be read no window is open and no run goes on, while the rollout cannot be read
// no run is opened and the one under way starts no further host.
type intent struct {
	tenant string
	zone   *time.Location
	logger *slog.Logger

	config         *v1.OSUpgrade
	windows        []window.Window
	configErr      error
	configRead     bool
	configRevision uint64

	rollout         *v1.Rollout
	rolloutErr      error
	rolloutRead     bool
	rolloutRevision uint64

	calendars         map[string]*calendar.Calendar
	calendarErrs      map[string]error
	calendarsRead     bool
	calendarsRevision uint64

	// schedule is what windows and calendars add up to, as written at
	// scheduledAt at the latest.
	schedule    window.Schedule
	scheduledAt time.Time
	// lookBackAt is when to look again for windows that were missed; zero after
	// each change of the schedule.
	lookBackAt time.Time
	// ahead is the window that is open or opens next, after the one that follows
	// a window that had its run, freezing the freeze.
	ahead, after outlook[window.Opening]
	freezing     outlook[window.Freeze]
}

func newIntent(o Options) intent {
	return intent{
		tenant: o.Tenant, zone: o.Zone, logger: o.Logger, calendars: map[string]*calendar.Calendar{}, calendarErrs: map[string]error{},
	}
}

// complete reports whether all has been read that was there at the start.
func (i *intent) complete() bool { return i.configRead && i.rolloutRead && i.calendarsRead }

// setConfig reads the tenant's configuration.
func (i *intent) setConfig(seen store.Seen[v1.OSUpgrade]) {
	i.config, i.windows, i.configErr = nil, nil, seen.Err
	if seen.Err == nil && seen.Value != nil {
		i.config = seen.Value
		i.windows, i.configErr = i.config.Windows()
	}
	if i.configErr != nil {
		i.logger.Error("the configuration cannot be used; no window is open and no run goes on", "tenant", i.tenant, "error", i.configErr)
	}
	i.reschedule(seen.At)
	i.configRead, i.configRevision = true, max(i.configRevision, seen.Number)
}

// setRollout reads the tenant's rollout.
func (i *intent) setRollout(seen store.Seen[v1.Rollout]) {
	i.rollout, i.rolloutErr = seen.Value, seen.Err
	if seen.Err != nil {
		i.logger.Error("the rollout cannot be used; no run is opened", "tenant", i.tenant, "error", seen.Err)
	}
	i.rolloutRead, i.rolloutRevision = true, max(i.rolloutRevision, seen.Number)
}

// setCalendar reads one of the tenant's calendars.
func (i *intent) setCalendar(seen store.SeenCalendar) {
	if seen.Name == "" { // The end of those that were there at the start.
		i.calendarsRead = true
		return
	}
	delete(i.calendars, seen.Name)
	delete(i.calendarErrs, seen.Name)
	err := seen.Err
	if err == nil && seen.Value != nil {
		parsed, wrong := seen.Value.Parse(seen.Name)
		if len(wrong) > 0 {
			err = wrong
		} else {
			i.calendars[seen.Name] = parsed
			for _, problem := range parsed.LeftOut() {
				i.logger.Warn("part of a calendar is left out", "tenant", i.tenant, "calendar", seen.Name, "reason", problem)
			}
		}
	}
	if err != nil {
		i.calendarErrs[seen.Name] = err
		i.logger.Error("a calendar cannot be used; no window is open and no run goes on", "tenant", i.tenant, "calendar", seen.Name, "error", err)
	}
	i.reschedule(seen.At)
	i.calendarsRevision = max(i.calendarsRevision, seen.Number)
}

// reschedule adds windows and calendars up anew. at is when what has changed
// was written: windows before that were not these.
func (i *intent) reschedule(at time.Time) {
	i.scheduledAt, i.lookBackAt = later(i.scheduledAt, at), time.Time{}
	i.ahead, i.after, i.freezing = outlook[window.Opening]{}, outlook[window.Opening]{}, outlook[window.Freeze]{}
	var calendars []*calendar.Calendar
	for _, name := range slices.Sorted(maps.Keys(i.calendars)) {
		calendars = append(calendars, i.calendars[name])
	}
	i.schedule = v1.Plan(i.windows, calendars, i.zone)
	if i.unreadable() != nil || i.config == nil { // A freeze that can be read is one all the same.
		i.schedule.Windows, i.schedule.Allow = nil, nil
	}
}

// unreadable returns what of all that decides when a run may be under way
// cannot be read, and what to do; nil when all can.
func (i *intent) unreadable() error {
	var all []string
	if i.configErr != nil {
		all = append(all, fmt.Sprintf("the configuration cannot be read: %v; write it anew", i.configErr))
	}
	for _, name := range slices.Sorted(maps.Keys(i.calendarErrs)) {
		all = append(all, fmt.Sprintf("calendar %s cannot be read: %v; write it anew or delete it", name, i.calendarErrs[name]))
	}
	if len(all) == 0 {
		return nil
	}
	return errors.New(strings.Join(all, ", and "))
}

// applications are the worker applications whose hosts are upgraded.
func (i *intent) applications() []v1.WorkerApplication {
	if i.config == nil {
		return nil
	}
	return i.config.WorkerApplications
}

// plan resolves the rollout for hosts.
func (i *intent) plan(hosts []plan.Host) (plan.Plan, error) {
	if i.rolloutErr != nil {
		return plan.Plan{}, i.rolloutErr
	}
	return plan.New(i.rollout, hosts)
}

// hold is what holds up every run now; nil when nothing does.
func (i *intent) hold() *message.Event {
	if err := i.unreadable(); err != nil {
		return &message.Event{Event: message.Paused, By: message.ByAgent, Why: message.CleanText(err.Error())}
	}
	switch {
	case i.rolloutErr != nil:
		why := fmt.Sprintf("the rollout cannot be read: %v; write it anew", i.rolloutErr)
		return &message.Event{Event: message.Paused, By: message.ByAgent, Why: message.CleanText(why)}
	case i.rollout != nil && i.rollout.Paused:
		return &message.Event{Event: message.Paused, By: message.ByRollout}
	}
	return nil
}

// nextOpening returns the window that is open or opens next.
func (i *intent) nextOpening(now time.Time) (window.Opening, bool) {
	return i.ahead.look(now, i.schedule.Next, endOfOpening)
}

// followingOpening returns the window that opens next after another one.
func (i *intent) followingOpening(o window.Opening) (window.Opening, bool) {
	return i.after.look(o.End, i.schedule.Next, endOfOpening)
}

func endOfOpening(o window.Opening) time.Time { return o.End }

// nextFreeze returns the freeze that is in force or comes next. Freezes that
// overlap or touch are one.
func (i *intent) nextFreeze(now time.Time) (window.Freeze, bool) {
	return i.freezing.look(now, i.schedule.NextFreeze, func(f window.Freeze) time.Time { return f.End })
}

// freezeName is the calendar and the event of a freeze, for people.
func freezeName(f window.Freeze) string {
	if summary := f.First.Origin.Summary; summary != "" {
		return f.First.Origin.Calendar + " (" + summary + ")"
	}
	return f.First.Origin.Calendar
}

const day = 24 * time.Hour

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
