package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// intent is what people declare for a tenant, as far as the controller has seen
// it: its configuration, its calendars and its rollout. What an object that
// cannot be used meant to forbid is unknown: with a configuration or a calendar
// no window is open and no run continues, with a rollout no run is opened and the
// one under way starts no further host.
type intent struct {
	tenant string
	zone   *time.Location
	logger *slog.Logger
	now    func() time.Time

	// config is nil when there is none; windows are those in it.
	config  *v1.OSUpgrade
	windows []window.Window
	// configRevision is that of config.
	configRevision store.Revision
	// rollout is nil when there is none; effective is it with its defaults.
	rollout   *v1.Rollout
	effective v1.Rollout
	// budgets are the disruption budgets, by name; budgetsID identifies them on the log.
	budgets   plan.Budgets
	budgetsID string
	// calendars are those that can be used, by name.
	calendars map[string]*calendar.Calendar
	// fetched are the calendars with a URL, and copies what the site fetched, by name.
	fetched map[string]v1.Calendar
	copies  map[string]*v1.CalendarCopy
	// environments are those that are declared and can be used, by name; membership decides who is
	// in which, nil when it is to be made anew.
	environments map[string]*declared
	membership   *plan.Membership
	// following are the environments that come after each one; nil when it is to be made anew.
	following map[string][]string
	// skips are the windows that people have skipped, by the name of the environment on the log.
	skips map[string]*v1.Skips
	// unusable are the objects that are there and cannot be used, and why.
	unusable map[store.Object]error
	// complete tells that all was seen that was there at the start, and revision
	// is the last one that was seen. While all is read anew, unconfirmed are the
	// objects that were not seen again so far.
	complete    bool
	revision    uint64
	unconfirmed map[store.Object]bool

	// agenda is that of the tenant, and so of the environment default; freezing is the freeze
	// that is in force or comes next.
	agenda
	freezing outlook[window.Freeze]
}

// The objects of which a tenant has one.
var (
	theConfig  = store.Object{Kind: store.Config}
	theRollout = store.Object{Kind: store.Rollout}
)

func newIntent(o Options) intent {
	return intent{
		tenant: o.Tenant, zone: o.Zone, logger: o.Logger, now: o.Now, calendars: map[string]*calendar.Calendar{}, fetched: map[string]v1.Calendar{}, copies: map[string]*v1.CalendarCopy{}, skips: map[string]*v1.Skips{}, environments: map[string]*declared{}, unusable: map[store.Object]error{},
		effective: v1.Rollout{}.WithDefaults(),
	}
}

// reread is called before all objects are read from the beginning.
func (i *intent) reread() {
	i.unconfirmed = map[store.Object]bool{}
	for o := range i.unusable {
		i.unconfirmed[o] = true
	}
	for name := range i.calendars {
		i.unconfirmed[store.Object{Kind: store.Calendar, Name: name}] = true
	}
	for name := range i.fetched {
		i.unconfirmed[store.Object{Kind: store.Calendar, Name: name}] = true
	}
	for name := range i.copies {
		i.unconfirmed[store.Object{Kind: store.Copy, Name: name}] = true
	}
	for name := range i.environments {
		i.unconfirmed[store.Object{Kind: store.Environment, Name: name}] = true
	}
	for name := range i.skips {
		i.unconfirmed[skipsOf(name)] = true
	}
	for _, b := range i.budgets {
		i.unconfirmed[store.Object{Kind: store.Budget, Name: b.Name}] = true
	}
	if i.config != nil {
		i.unconfirmed[theConfig] = true
	}
	if i.rollout != nil {
		i.unconfirmed[theRollout] = true
	}
}

// set puts an object that was written or deleted in place of the one that was
// seen before.
func (i *intent) set(seen store.Seen) {
	i.revision = max(i.revision, seen.Number)
	if seen.Kind == store.Webhook {
		return // It decides nothing about runs.
	}
	delete(i.unconfirmed, seen.Object)
	switch seen.Kind {
	case store.Copy:
		i.setCopy(seen.Name, seen.Copy)
		return
	case store.Environment:
		i.setEnvironment(seen)
		return
	case store.Skip:
		i.setSkips(seen)
		return
	}
	err := seen.Err
	switch seen.Kind {
	case store.Config:
		i.configRevision = store.Revision{Bucket: seen.Bucket, Number: seen.Number}
		if i.config, i.windows = seen.Config, nil; i.config != nil {
			i.windows, err = i.config.Windows()
		}
	case store.Rollout:
		i.rollout, i.effective = seen.Rollout, v1.Rollout{}.WithDefaults()
		if i.rollout != nil {
			i.effective = i.rollout.WithDefaults()
		}
	case store.Budget:
		i.setBudget(seen.Name, seen.Budget)
	case store.Calendar:
		delete(i.calendars, seen.Name)
		delete(i.fetched, seen.Name)
		switch c := seen.Calendar; {
		case c == nil:
		case c.URL != "":
			i.fetched[seen.Name] = *c
			err = i.addFetched(seen.Name)
		default:
			err = i.addCalendar(seen.Name, *c)
		}
	default: // The end of those that were there at first.
		i.complete = true
		for o := range i.unconfirmed {
			i.set(store.Seen{Object: o})
		}
		for name := range i.fetched { // Their copies may have been read after them.
			i.note(store.Object{Kind: store.Calendar, Name: name}, i.addFetched(name))
		}
	}
	i.note(seen.Object, err)
	if seen.Kind != store.Rollout && seen.Kind != store.Budget {
		i.reschedule(seen.At)
	}
}

// setBudget puts a disruption budget in place of the one of its name; nil deletes that.
func (i *intent) setBudget(name string, b *v1.Budget) {
	n, found := slices.BinarySearchFunc(i.budgets, name, func(b plan.Budget, name string) int { return strings.Compare(b.Name, name) })
	switch {
	case b == nil && found:
		i.budgets = slices.Delete(slices.Clone(i.budgets), n, n+1)
	case b != nil && found:
		i.budgets = slices.Clone(i.budgets)
		i.budgets[n].Budget = *b
	case b != nil:
		i.budgets = slices.Insert(slices.Clone(i.budgets), n, plan.Budget{Name: name, Budget: *b})
	}
	i.budgetsID = i.budgets.ID()
}

// note notes whether an object can be used.
func (i *intent) note(o store.Object, err error) {
	if delete(i.unusable, o); err == nil {
		return
	}
	i.unusable[o] = err
	if _, is := errors.AsType[errNotFetched](err); is {
		return // Whoever fetches it says why.
	}
	logger := i.logger.With("tenant", i.tenant)
	if o.Name != "" {
		logger = logger.With(string(o.Kind), o.Name)
	}
	logger.Error(consequences[o.Kind], "error", err)
}

// setCopy puts what was fetched of a calendar in place of what was fetched before; nil means that
// there is none. An answer with the same events changes no window.
func (i *intent) setCopy(name string, next *v1.CalendarCopy) {
	was := i.copies[name]
	if delete(i.copies, name); next != nil {
		i.copies[name] = next
	}
	declared, isFetched := i.fetched[name]
	if !isFetched {
		return
	}
	before, wasKnown := was.In(declared)
	after, isKnown := next.In(declared)
	if wasKnown == isKnown && v1.SameCalendar(before, after) {
		return
	}
	delete(i.calendars, name)
	i.note(store.Object{Kind: store.Calendar, Name: name}, i.addFetched(name))
	at := i.now()
	if isKnown {
		at = next.ChangedAt
	}
	i.reschedule(at)
}

// errNotFetched is a freeze of which no event is known.
type errNotFetched struct{ name, host string }

func (e errNotFetched) Error() string {
	return fmt.Sprintf("calendar %s is a freeze that was not fetched from %s yet", e.name, e.host)
}

// addFetched adds a calendar with the events that were fetched of it. Without any, one of kind
// allow opens nothing. One of kind freeze cannot be used: nobody knows what it forbids. Before all
// was read the copy may follow.
func (i *intent) addFetched(name string) error {
	declared, kept := i.fetched[name], i.copies[name]
	inForce, known := kept.In(declared)
	err := error(errNotFetched{name, declared.Host()})
	if known {
		if err = i.addCalendar(name, inForce); err == nil {
			return nil
		}
	}
	if declared.Kind != string(calendar.Freeze) || !known && !i.complete {
		return nil
	}
	return err
}

// consequences tell what follows from an object that cannot be used.
var consequences = map[store.Kind]string{
	store.Config:   "the configuration cannot be used; no window is open and no run continues",
	store.Rollout:  "the rollout cannot be used; no run is opened",
	store.Calendar: "a calendar cannot be used; no window is open and no run continues",
	// Nobody knows which hosts it would have taken from the others.
	store.Environment: "an environment cannot be used; no window is open and no run continues",
	store.Skip:        "nobody knows which windows are skipped; no window of the environment opens a run",
	store.Budget:      "a disruption budget cannot be used; no run is opened",
}

func (i *intent) addCalendar(name string, c v1.Calendar) error {
	parsed, wrong := c.Parse(name)
	if len(wrong) > 0 {
		return wrong
	}
	i.calendars[name] = parsed
	for _, problem := range parsed.LeftOut() {
		i.logger.Warn("part of a calendar is left out", "tenant", i.tenant, "calendar", name, "reason", problem)
	}
	return nil
}

// fetchedStates tells what was fetched of each calendar with a URL, by name.
func (i *intent) fetchedStates() (all []v1.CalendarState) {
	for _, name := range slices.Sorted(maps.Keys(i.fetched)) {
		s := i.copies[name].State(name, i.fetched[name])
		s.Events = nil
		all = append(all, s)
	}
	return all
}

// reschedule adds the windows and calendars of all environments up anew. at is when what has changed
// was written: windows before that were not these.
func (i *intent) reschedule(at time.Time) {
	i.freezing = outlook[window.Freeze]{}
	tenants := i.tenantSchedule()
	i.change(at, i.now(), tenants)
	for name, d := range i.environments {
		schedule := tenants
		if d.HasSchedule() {
			schedule = i.scheduleOf(name)
		}
		d.change(at, i.now(), schedule)
	}
}

// followClock has all that follows from the schedules and the clock be found anew.
func (i *intent) followClock() {
	i.freezing = outlook[window.Freeze]{}
	i.eachAgenda((*agenda).forgetOutlook)
}

// setBack follows a clock that was set back.
func (i *intent) setBack(now time.Time) { i.eachAgenda(func(a *agenda) { a.setBack(now) }) }

func (i *intent) eachAgenda(do func(*agenda)) {
	do(&i.agenda)
	for _, d := range i.environments {
		do(&d.agenda)
	}
}

// unreadable returns what of all that decides when a run may be under way
// cannot be read, and what to do; nil when all can.
func (i *intent) unreadable() error {
	if len(i.unusable) == 0 { // This is asked for each decision.
		return nil
	}
	var all []string
	if err := i.unusable[theConfig]; err != nil {
		all = append(all, fmt.Sprintf("the configuration cannot be read: %v; write it anew", err))
	}
	for _, o := range slices.SortedFunc(maps.Keys(i.unusable), func(a, b store.Object) int { return strings.Compare(a.Name, b.Name) }) {
		switch notFetched, is := errors.AsType[errNotFetched](i.unusable[o]); {
		case is:
			all = append(all, notFetched.Error()+"; correct its URL or delete it")
		case o.Kind == store.Calendar:
			all = append(all, fmt.Sprintf("calendar %s cannot be read: %v; write it anew or delete it", o.Name, i.unusable[o]))
		case o.Kind == store.Environment:
			all = append(all, fmt.Sprintf("environment %s cannot be read: %v; write it anew or delete it", o.Name, i.unusable[o]))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return errors.New(strings.Join(all, ", and "))
}

// unplannable returns why no run can be planned; nil when one can.
func (i *intent) unplannable() error {
	if len(i.unusable) == 0 {
		return nil
	}
	if err := i.unusable[theRollout]; err != nil {
		return fmt.Errorf("the rollout cannot be read: %w; write it anew", err)
	}
	for _, o := range slices.SortedFunc(maps.Keys(i.unusable), func(a, b store.Object) int { return strings.Compare(a.Name, b.Name) }) {
		if o.Kind == store.Budget {
			return fmt.Errorf("disruption budget %s cannot be read: %w; write it anew or delete it", o.Name, i.unusable[o])
		}
	}
	return nil
}

// applications are the worker applications whose hosts are upgraded.
func (i *intent) applications() []v1.WorkerApplication {
	if i.config == nil {
		return nil
	}
	return i.config.WorkerApplications
}

// retryAfter is how long after a run that touched no host the next one is opened.
func (i *intent) retryAfter(environment string) time.Duration {
	return i.effectiveOf(environment).RetryAfter.Duration()
}

// reserve is how long before the end of its window a run ends.
func (i *intent) reserve(environment string) time.Duration {
	return i.effectiveOf(environment).Reserve.Duration()
}

// plan resolves the rollout of an environment for its hosts, and for a run that goes on where its course
// says.
func (i *intent) plan(environment string, hosts []plan.Host, course reached.Course) (plan.Plan, error) {
	if err := i.unusable[theRollout]; err != nil {
		return plan.Plan{}, err
	}
	if err := i.unplannable(); err != nil {
		return plan.Plan{}, err
	}
	return plan.New(i.rolloutOf(environment), hosts, course)
}

// hold is what holds up the run of an environment now; nil when nothing does. What holds up the
// tenant holds up all of them.
func (i *intent) hold(environment string) *message.Paused {
	if err := i.unreadable(); err != nil {
		return &message.Paused{By: message.ByAgent, Why: message.CleanText(err.Error())}
	}
	if err := i.unplannable(); err != nil {
		return &message.Paused{By: message.ByAgent, Why: message.CleanText(err.Error())}
	}
	if own := i.rolloutOf(environment); i.rollout != nil && i.rollout.Paused || own != nil && own.Paused {
		return &message.Paused{By: message.ByRollout}
	}
	return nil
}

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
// It compares by the wall clock alone; see wallClock.
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
