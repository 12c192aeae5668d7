package controller

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// agenda is when runs of an environment may be under way.
type agenda struct {
	// schedule is what windows and calendars add up to, as written at
	// scheduledAt at the latest.
	schedule    window.Schedule
	scheduledAt time.Time
	// lookBackAt is when to look again for windows that were missed; zero after
	// each change of the schedule.
	lookBackAt time.Time
	// owed are windows of earlier schedules that closed without a run, and of which
	// no record says so yet.
	owed []window.Opening
	// ahead is the window that is open or opens next, after the one that follows
	// a window that had its run.
	ahead, after outlook[window.Opening]
}

// declared is a declared environment.
type declared struct {
	v1.Environment
	agenda
	// windows are those of its own, effective is its own rollout with its defaults.
	windows   []window.Window
	effective v1.Rollout
}

// orderOf returns which environments an environment comes after; false when it comes after none.
func (i *intent) orderOf(environment string) (run.Order, bool) {
	d := i.environments[environment]
	return d.order(), d != nil && d.After != nil
}

// order is which environments an environment comes after, by their names on the log.
func (d *declared) order() (order run.Order) {
	if d == nil || d.After == nil {
		return order
	}
	order.Soak = d.After.Soak.Duration()
	for _, name := range d.After.Environments {
		order.Environments = append(order.Environments, onLog(name))
	}
	return order
}

// followers returns the environments that come after each one, by its name on the log.
func (i *intent) followers() map[string][]string {
	if i.following == nil {
		i.following = map[string][]string{}
		for _, name := range slices.Sorted(maps.Keys(i.environments)) {
			order, _ := i.orderOf(name)
			for _, before := range order.Environments {
				i.following[before] = append(i.following[before], name)
			}
		}
	}
	return i.following
}

// nextOpening returns the window that is open or opens next.
func (a *agenda) nextOpening(now time.Time) (window.Opening, bool) {
	return a.ahead.look(now, a.schedule.Next, endOfOpening)
}

// followingOpening returns the window that opens next after another one.
func (a *agenda) followingOpening(o window.Opening) (window.Opening, bool) {
	return a.after.look(o.End, a.schedule.Next, endOfOpening)
}

func endOfOpening(o window.Opening) time.Time { return o.End }

// forgetOutlook has all that follows from the schedule and the clock be found anew.
func (a *agenda) forgetOutlook() {
	a.lookBackAt = time.Time{}
	a.ahead, a.after = outlook[window.Opening]{}, outlook[window.Opening]{}
}

// setBack follows a clock that was set back: what was written by then was not written
// later than now.
func (a *agenda) setBack(now time.Time) { a.scheduledAt = times.Earlier(a.scheduledAt, now) }

// of returns when runs of an environment may be under way; one that is not declared has no
// window.
func (i *intent) of(environment string) *agenda {
	if environment == defaultName {
		return &i.agenda
	}
	if d := i.environments[environment]; d != nil {
		return &d.agenda
	}
	return &agenda{}
}

// rolloutOf returns the rollout of an environment, its own or that of the tenant; nil when there
// is none.
func (i *intent) rolloutOf(environment string) *v1.Rollout {
	if d := i.environments[environment]; d != nil && d.Rollout != nil {
		return d.Rollout
	}
	return i.rollout
}

// effectiveOf returns the rollout of an environment with its defaults.
func (i *intent) effectiveOf(environment string) *v1.Rollout {
	if d := i.environments[environment]; d != nil && d.Rollout != nil {
		return &d.effective
	}
	return &i.effective
}

// setEnvironment puts an environment in place of what was declared of it before.
func (i *intent) setEnvironment(seen store.Seen) {
	o, before := seen.Object, i.environments[seen.Name]
	wasUnusable := i.unusable[o] != nil
	delete(i.environments, seen.Name)
	next, err := declaredAs(seen)
	if next != nil {
		if before != nil {
			next.agenda = before.agenda
		}
		i.environments[seen.Name] = next
	}
	i.sort(seen.Name, next)
	i.follow(seen.Name, before, next)
	i.note(o, err)
	switch {
	case wasUnusable || err != nil || !slices.Equal(before.calendars(), next.calendars()):
		i.reschedule(seen.At) // Others may have other windows by this, too.
	case next != nil && (before == nil || !reflect.DeepEqual(before.windows, next.windows) || before.HasSchedule() != next.HasSchedule()):
		next.change(seen.At, i.now(), i.scheduleOf(seen.Name))
	}
}

// sort has who is in which environment follow from what is now declared of one.
func (i *intent) sort(name string, next *declared) {
	switch {
	case i.membership == nil:
	case len(i.environments) == 0:
		i.membership = nil
	case next == nil:
		i.membership.Set(name, nil)
	default:
		i.membership.Set(name, &next.Match)
	}
}

// follow notes which environments an environment now comes after.
func (i *intent) follow(name string, before, next *declared) {
	if i.following == nil {
		return
	}
	for _, earlier := range before.order().Environments {
		i.following[earlier] = slices.DeleteFunc(i.following[earlier], func(other string) bool { return other == name })
	}
	for _, earlier := range next.order().Environments {
		at, _ := slices.BinarySearch(i.following[earlier], name)
		i.following[earlier] = slices.Insert(i.following[earlier], at, name)
	}
}

// concernsAll reports whether what was seen may change more than one environment and those that come after
// it: it is of none of them, or changes which calendars open windows for the others.
func (i *intent) concernsAll(seen store.Seen) bool {
	if seen.Kind != store.Environment || i.unusable[seen.Object] != nil {
		return true
	}
	next, err := declaredAs(seen)
	return err != nil || !slices.Equal(i.environments[seen.Name].calendars(), next.calendars())
}

// declaredAs reads an environment that was seen; nil when there is none that can be used.
func declaredAs(seen store.Seen) (*declared, error) {
	if seen.Environment == nil {
		return nil, seen.Err
	}
	if seen.Name == v1.DefaultEnvironment {
		return nil, errors.New("default is the environment of all hosts that no other has; give this one another name")
	}
	next := &declared{Environment: *seen.Environment}
	if wrong := next.Validate(); len(wrong) > 0 {
		return nil, wrong
	}
	next.windows, _ = v1.OSUpgrade{MaintenanceWindows: next.MaintenanceWindows}.Windows()
	if next.Rollout != nil {
		next.effective = next.Rollout.WithDefaults()
	}
	return next, nil
}

// calendars are the calendars that an environment names.
func (d *declared) calendars() []string {
	if d == nil {
		return nil
	}
	return d.Calendars
}

// sorting returns what decides who is in which environment; nil when none is declared.
func (i *intent) sorting() *plan.Membership {
	if i.membership == nil && len(i.environments) > 0 {
		i.membership = plan.NewMembership(i.declaredEnvironments())
	}
	return i.membership
}

// declaredEnvironments are the environments that are declared, by name.
func (i *intent) declaredEnvironments() map[string]v1.Environment {
	all := make(map[string]v1.Environment, len(i.environments))
	for name, d := range i.environments {
		all[name] = d.Environment
	}
	return all
}

// calendarKinds are the kinds of the declared calendars, by name. That of one that cannot be read is
// empty.
func (i *intent) calendarKinds() map[string]string {
	kinds := map[string]string{}
	for o := range i.unusable {
		if o.Kind == store.Calendar {
			kinds[o.Name] = ""
		}
	}
	for name, declared := range i.fetched {
		kinds[name] = declared.Kind
	}
	for name, c := range i.calendars {
		kinds[name] = string(c.Kind())
	}
	return kinds
}

// scheduleOf adds up the windows and calendars of an environment.
func (i *intent) scheduleOf(environment string) window.Schedule {
	if d := i.environments[environment]; d != nil && d.HasSchedule() {
		return i.addUp(d.windows, func(name string) bool { return slices.Contains(d.Calendars, name) })
	}
	return i.tenantSchedule()
}

// tenantSchedule adds up what is of no environment in particular. A calendar that opens windows
// and that environments name opens them for nobody else.
func (i *intent) tenantSchedule() window.Schedule {
	named := map[string]bool{}
	for _, d := range i.environments {
		for _, name := range d.Calendars {
			named[name] = true
		}
	}
	return i.addUp(i.windows, func(name string) bool { return !named[name] })
}

// addUp adds up windows, the calendars that open further ones, and all freezes.
func (i *intent) addUp(windows []window.Window, opens func(calendar string) bool) window.Schedule {
	var calendars []*calendar.Calendar
	for _, name := range slices.Sorted(maps.Keys(i.calendars)) {
		if c := i.calendars[name]; c.Kind() == calendar.Freeze || opens(name) {
			calendars = append(calendars, c)
		}
	}
	schedule := v1.Schedule(windows, calendars, i.zone)
	if i.unreadable() != nil || i.config == nil { // A freeze that can be read is one all the same.
		schedule.Windows, schedule.Allow = nil, nil
	}
	return schedule
}

// change puts a schedule in place of the one before. at is when what has changed was written:
// windows before that were not these.
func (a *agenda) change(at, now time.Time, schedule window.Schedule) {
	a.scheduledAt = times.Later(a.scheduledAt, times.Earlier(at, now))
	a.forgetOutlook()
	a.schedule = schedule
}
