package window

// This file warns at plan time about the next window: there is none, it is completely
// frozen, it is shorter than any run so far, or a change of the clock moves it. It omits
// warnings for which the server does not answer. It does not know the site's time zone
// and takes UTC for site-local.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// kindFreeze is the kind of calendars whose events close.
const kindFreeze = "freeze"

// WarnOfConfig warns about the next window of a configuration, with the tenant's
// calendars and those that the same plan makes. It makes at most one request, and for a
// creation only if a window is open; one more if no window lies ahead.
func WarnOfConfig(ctx context.Context, change tenantobject.Change[v1.OSUpgrade], diags *diag.Diagnostics) {
	togetherOf(change.Data, change.At.Tenant).noteConfig(change)
	warnOfWindows(ctx, change, diags)
}

func warnOfWindows(ctx context.Context, change tenantobject.Change[v1.OSUpgrade], diags *diag.Diagnostics) {
	if change.Deletion || change.Want.MaintenanceWindows == nil {
		return // Nothing opens, or it is not managed by this resource.
	}
	w := warnings{path.Root("maintenance_windows"), "window", change.Now, diags}
	alone, err := v1.ScheduleOf(change.Want, nil, time.UTC)
	if err != nil {
		return
	}
	next, found := alone.Next(w.now)
	if found {
		w.moved(next)
	}
	if change.Prior == nil && !opens(alone, w.now) {
		if !found {
			w.noneOfTenant(ctx, change, alone)
		}
		return
	}
	if shortened(change) {
		w.short(next, shortest(ctx, change.API, change.At.Tenant))
		return
	}
	calendars, known := calendarsOf(ctx, change.API, change.At.Tenant)
	if len(change.Want.MaintenanceWindows) == 0 && !known {
		return // An unknown calendar may open.
	}
	planned := togetherOf(change.Data, change.At.Tenant)
	calendars = planned.merge(calendars)
	plan, err := v1.ScheduleOf(change.Want, calendars, time.UTC)
	if err != nil {
		return // A calendar of a newer server.
	}
	if w.noneOfTenant(ctx, change, plan) || w.frozen(plan) {
		return
	}
	if was := prior(change, calendars); opens(plan, w.now) && !opens(was, w.now) && !planned.holds(change.Data, change.At.Tenant) {
		w.atOnce(plan)
	}
}

// noneOfTenant warns if a tenant has no next window and neither has any environment of its own, and
// reports that the tenant has none. A tenant whose environments have windows needs none: the hosts of
// no environment are then upgraded by nobody, which is what many want.
func (w warnings) noneOfTenant(ctx context.Context, change tenantobject.Change[v1.OSUpgrade], plan window.Schedule) bool {
	if liesAhead(plan, w.now) {
		return false
	}
	if !environmentsOpen(ctx, change) {
		w.none(plan)
	}
	return true
}

// environmentsOpen reports whether an environment has windows of its own, on the server or in the
// same plan, or whether the server does not tell.
func environmentsOpen(ctx context.Context, change tenantobject.Change[v1.OSUpgrade]) bool {
	planned := togetherOf(change.Data, change.At.Tenant)
	planned.settle(ctx)
	all := map[string]v1.Environment{}
	if change.API != nil {
		stored, err := change.API.StoredEnvironments(ctx, change.At.Tenant)
		if err != nil && !client.Missing(err) {
			return true
		}
		for name, e := range stored {
			all[name] = e.Value
		}
	}
	for _, e := range planned.environments(all) {
		if e.HasWindows() {
			return true
		}
	}
	return false
}

// WarnOfEnvironment warns about the next window of an environment that has windows of its own, with
// the freezes of the tenant and the calendars that the environment names. It makes at most one
// request, and for a creation only if a window is open.
func WarnOfEnvironment(ctx context.Context, change tenantobject.Change[v1.Environment], diags *diag.Diagnostics) {
	togetherOf(change.Data, change.At.Tenant).noteEnvironment(change)
	if change.Deletion || change.Want.MaintenanceWindows == nil {
		return // Nothing opens, or the windows are those of the tenant.
	}
	w := warnings{path.Root("maintenance_windows"), "window", change.Now, diags}
	alone, err := v1.ScheduleOf(windowsOf(change.Want), nil, time.UTC)
	if err != nil {
		return
	}
	next, found := alone.Next(w.now)
	if found {
		w.moved(next)
	}
	if change.Prior == nil && found && !opens(alone, w.now) {
		return
	}
	calendars, known := calendarsOf(ctx, change.API, change.At.Tenant)
	if len(change.Want.Calendars) > 0 && !known {
		return // An unknown calendar may open.
	}
	planned := togetherOf(change.Data, change.At.Tenant)
	calendars = planned.merge(calendars)
	plan, err := v1.ScheduleOf(windowsOf(change.Want), countedFor(change.Want, calendars), time.UTC)
	if err != nil || w.none(plan) || w.frozen(plan) {
		return
	}
	held := change.Want.Rollout != nil && change.Want.Rollout.Paused || planned.holds(change.Data, change.At.Tenant)
	if opens(plan, w.now) && !wasOpen(change, calendars) && !held {
		w.atOnce(plan)
	}
}

// windowsOf returns the windows of an environment as a configuration has them.
func windowsOf(e v1.Environment) v1.OSUpgrade {
	return v1.OSUpgrade{MaintenanceWindows: e.MaintenanceWindows}
}

// countedFor returns the calendars that count for an environment with windows of its own.
func countedFor(e v1.Environment, calendars map[string]v1.Calendar) map[string]v1.Calendar {
	counted := map[string]v1.Calendar{}
	for name, c := range calendars {
		if c.Kind == kindFreeze || slices.Contains(e.Calendars, name) {
			counted[name] = c
		}
	}
	return counted
}

// wasOpen reports whether a window of the environment was open before a change.
func wasOpen(change tenantobject.Change[v1.Environment], calendars map[string]v1.Calendar) bool {
	if change.Prior == nil {
		return false
	}
	plan, err := v1.ScheduleOf(windowsOf(*change.Prior), countedFor(*change.Prior, calendars), time.UTC)
	return err == nil && opens(plan, change.Now)
}

// warnIfOpen warns about a new window that is open now. Another one is warned of by nothing
// but the configuration that has all windows.
func warnIfOpen(ctx context.Context, change tenantobject.Change[v1.OSUpgrade], w v1.MaintenanceWindow, diags *diag.Diagnostics) {
	alone, err := v1.ScheduleOf(v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{w}}, nil, time.UTC)
	if err != nil || !opens(alone, change.Now) {
		return
	}
	var found diag.Diagnostics
	warnOfWindows(ctx, change, &found)
	for _, d := range found {
		diags.AddAttributeWarning(path.Root("start_time"), d.Summary(), d.Detail())
	}
}

// prior returns the schedule before a change.
func prior(change tenantobject.Change[v1.OSUpgrade], calendars map[string]v1.Calendar) window.Schedule {
	var was v1.OSUpgrade
	if change.Prior != nil {
		was = *change.Prior
	}
	plan, err := v1.ScheduleOf(was, calendars, time.UTC)
	if err != nil {
		return window.Schedule{}
	}
	return plan
}

// shortened reports whether a change makes the next window shorter.
func shortened(change tenantobject.Change[v1.OSUpgrade]) bool {
	plan, err := v1.ScheduleOf(change.Want, nil, time.UTC)
	if change.Prior == nil || err != nil {
		return false
	}
	before, had := prior(change, nil).Next(change.Now)
	after, has := plan.Next(change.Now)
	return had && has && after.Length() < before.Length()
}

// opens reports whether a window is open now.
func opens(plan window.Schedule, now time.Time) bool {
	next, ok := plan.Next(now)
	return ok && !now.Before(next.Start)
}

// WarnOfCalendar warns about the next event of a calendar, with the tenant's
// freezes. For a freeze it warns about the next window of the tenant. It makes at most
// one request, and for a creation only if an event of an allow calendar is under way; two
// if the change lifts a freeze that is in force now, or opens a window now.
func WarnOfCalendar(ctx context.Context, change tenantobject.Change[v1.Calendar], diags *diag.Diagnostics) {
	planned := togetherOf(change.Data, change.At.Tenant)
	planned.noteCalendar(change)
	where, at, want := path.Root("events"), change.At, change.Want
	if want.ICS != nil {
		where = path.Root("ics")
	}
	if lifts(change) {
		warnings{where, "window", change.Now, diags}.reopens(ctx, change)
		return
	}
	if change.Deletion || want.URL != "" { // What is at a URL only the site knows.
		return
	}
	parsed, wrong := want.Parse(at.Name)
	if len(wrong) > 0 {
		return
	}
	w := warnings{where, "event of calendar " + at.Name, change.Now, diags}
	for _, problem := range parsed.LeftOut() {
		diags.AddAttributeWarning(where, "Part of the iCalendar text is left out", problem.Error())
	}
	alone := window.Schedule{Allow: []window.Calendar{parsed}}
	if w.none(alone) {
		return
	}
	next, _ := alone.Next(w.now)
	w.moved(next)
	if want.Kind == kindFreeze {
		w.closes(ctx, change, parsed)
		return
	}
	before, had := scheduleBefore(change).Next(w.now)
	if had && next.Length() < before.Length() {
		w.short(next, shortest(ctx, change.API, at.Tenant))
		return
	}
	openBefore := had && !w.now.Before(before.Start)
	if change.Prior == nil && !opens(alone, w.now) {
		return
	}
	others, _ := calendarsOf(ctx, change.API, at.Tenant)
	delete(planned.merge(others), at.Name)
	plan, err := v1.ScheduleOf(v1.OSUpgrade{}, onlyFreezes(others, at.Name, want), time.UTC)
	if err != nil || w.frozen(plan) {
		return
	}
	if opens(plan, w.now) && !openBefore && !planned.holds(change.Data, at.Tenant) {
		w.joins(ctx, change, others)
	}
}

// joins warns that a run starts at once by an event of a calendar, and names the end of the
// window that the event is a part of: other windows and events may overlap it. If one of them
// is open already, no run starts by the event. It makes one request.
func (w warnings) joins(ctx context.Context, change tenantobject.Change[v1.Calendar], others map[string]v1.Calendar) {
	var config v1.OSUpgrade
	if change.API != nil {
		// Without an answer the warning is of the calendars alone.
		if known, _, err := change.API.Config(ctx, change.At.Tenant); err == nil {
			config = known
		}
	}
	config = togetherOf(change.Data, change.At.Tenant).config(config)
	if was, err := v1.ScheduleOf(config, others, time.UTC); err == nil && opens(was, w.now) {
		return
	}
	others[change.At.Name] = change.Want
	if whole, err := v1.ScheduleOf(config, others, time.UTC); err == nil {
		w.atOnce(whole)
	}
}

// scheduleBefore returns what an allow calendar opened before a change.
func scheduleBefore(change tenantobject.Change[v1.Calendar]) window.Schedule {
	if change.Prior == nil || change.Prior.Kind == kindFreeze {
		return window.Schedule{}
	}
	was, wrong := change.Prior.Parse(change.At.Name)
	if len(wrong) > 0 {
		return window.Schedule{}
	}
	return window.Schedule{Allow: []window.Calendar{was}}
}

// lifts reports whether a change ends a freeze that is in force now.
func lifts(change tenantobject.Change[v1.Calendar]) bool {
	return change.Prior != nil && inForce(*change.Prior, change) && (change.Deletion || !inForce(change.Want, change))
}

// inForce reports whether a calendar freezes at the time of a plan.
func inForce(c v1.Calendar, change tenantobject.Change[v1.Calendar]) bool {
	parsed, wrong := c.Parse(change.At.Name)
	if c.Kind != kindFreeze || len(wrong) > 0 {
		return false
	}
	closed, ok := window.Schedule{Freezes: []window.Calendar{parsed}}.NextFreeze(change.Now)
	return ok && !closed.Start.After(change.Now)
}

// reopens warns if a window is open now that nothing but the freeze closes which a change
// lifts, as far as the server tells.
func (w warnings) reopens(ctx context.Context, change tenantobject.Change[v1.Calendar]) {
	calendars, known := calendarsOf(ctx, change.API, change.At.Tenant)
	if !known {
		return
	}
	config, _, err := change.API.Config(ctx, change.At.Tenant)
	if err != nil && !client.Missing(err) {
		return
	}
	planned := togetherOf(change.Data, change.At.Tenant)
	if change.Deletion && !change.Renamed {
		planned.settle(ctx)
	}
	if delete(planned.merge(calendars), change.At.Name); !change.Deletion {
		calendars[change.At.Name] = change.Want
	}
	plan, err := v1.ScheduleOf(planned.config(config), calendars, time.UTC)
	if err != nil || !opens(plan, w.now) || planned.holds(change.Data, change.At.Tenant) {
		return
	}
	open, _ := plan.Next(w.now)
	advice := "To apply without a run, apply outside of the window, or set paused = true in the rollout first."
	if change.Renamed {
		advice = "A change of the name replaces the calendar. Without lifecycle { create_before_destroy = true }, Terraform deletes the old one before it creates the new one."
	}
	w.diags.AddAttributeWarning(w.at, "A run starts as soon as this is applied", fmt.Sprintf(
		"A window is open until %s, with site-local taken for UTC, and nothing but calendar %s of tenant %s closes it now. %s",
		utc(open.End), change.At.Name, change.At.Tenant, advice))
}

// closes warns if a changed freeze closes a next window that is open without it, as far as
// the server tells.
func (w warnings) closes(ctx context.Context, change tenantobject.Change[v1.Calendar], freeze window.Calendar) {
	if change.API == nil || change.Prior == nil {
		return
	}
	ahead, err := change.API.Windows(ctx, change.At.Tenant, w.now, time.Time{}, 1)
	if err != nil || len(ahead) == 0 {
		return
	}
	closed, ok := window.Schedule{Freezes: []window.Calendar{freeze}}.NextFreeze(latest(w.now, ahead[0].Start))
	if !ok || closed.Start.After(latest(w.now, ahead[0].Start)) || closed.End.Before(ahead[0].End) {
		return
	}
	w.diags.AddAttributeWarning(w.at, "The next window is frozen", fmt.Sprintf(
		"From %s to %s no run may be in progress: calendar %s freezes it until %s.",
		utc(ahead[0].Start), utc(ahead[0].End), change.At.Name, utc(closed.End)))
}

// atOnce warns that a run starts as soon as the change is applied.
func (w warnings) atOnce(plan window.Schedule) {
	open, _ := plan.Next(w.now)
	w.diags.AddAttributeWarning(w.at, "A run starts as soon as this is applied",
		"A window is open until "+utc(open.End)+", with site-local taken for UTC. What else the same apply creates does not count for that run if it is created later: "+
			"a freeze does not hold it, and it goes by the rollout of now. Give this resource depends_on with the rollout and the calendars, "+
			"as the guide \"Order of an apply\" shows.")
}

// onlyFreezes returns a calendar and the freezes among the others.
func onlyFreezes(others map[string]v1.Calendar, name string, calendar v1.Calendar) map[string]v1.Calendar {
	kept := map[string]v1.Calendar{name: calendar}
	for other, c := range others {
		if c.Kind == kindFreeze {
			kept[other] = c
		}
	}
	return kept
}

// calendarsOf returns the tenant's calendars and whether they are known.
func calendarsOf(ctx context.Context, api *client.Client, tenant string) (map[string]v1.Calendar, bool) {
	if api == nil {
		return map[string]v1.Calendar{}, false
	}
	calendars, err := api.CalendarsInForce(ctx, tenant)
	if err != nil {
		return map[string]v1.Calendar{}, false
	}
	return calendars, true
}

// shortest returns the duration of the shortest of the recent completed runs;
// zero if none is known.
func shortest(ctx context.Context, api *client.Client, tenant string) time.Duration {
	if api == nil {
		return 0
	}
	runs, err := api.Runs(ctx, tenant, v1.RunFilter{Result: "completed"})
	if err != nil {
		return 0
	}
	var least time.Duration
	for _, run := range runs {
		if run.EndedAt == nil {
			continue
		}
		if took := run.EndedAt.Sub(run.OpenedAt); took > 0 && (least == 0 || took < least) {
			least = took
		}
	}
	return least
}

// warnings adds the warnings of one attribute.
type warnings struct {
	at path.Path
	// what names the object of the warnings, such as "window".
	what  string
	now   time.Time
	diags *diag.Diagnostics
}

// none warns if there is no next window, and reports that.
func (w warnings) none(plan window.Schedule) bool {
	if liesAhead(plan, w.now) {
		return false
	}
	w.diags.AddAttributeWarning(w.at, "No "+w.what+" lies ahead",
		"From "+utc(w.now)+" on, for the next ten years, there is no "+w.what+".")
	return true
}

// liesAhead reports whether there is a next window, frozen or not.
func liesAhead(plan window.Schedule, now time.Time) bool {
	plan.Freezes = nil
	_, ok := plan.Next(now)
	return ok
}

// frozen warns if the rest of the next window is completely frozen, and reports
// that.
func (w warnings) frozen(plan window.Schedule) bool {
	if !isFrozen(plan, w.now) {
		return false
	}
	unfrozen := plan
	unfrozen.Freezes = nil
	closed, _ := unfrozen.Next(w.now)
	detail := fmt.Sprintf("From %s to %s", utc(closed.Start), utc(closed.End))
	if freeze, ok := plan.NextFreeze(latest(w.now, closed.Start)); ok {
		by := freeze.First.Origin
		detail += fmt.Sprintf(" no run may be in progress: calendar %s", by.Calendar)
		if by.Summary != "" {
			detail += fmt.Sprintf(" (%s)", by.Summary)
		}
		detail += fmt.Sprintf(" freezes it until %s.", utc(freeze.End))
	}
	if open, ok := plan.Next(w.now); ok {
		detail += fmt.Sprintf(" The next open one begins at %s and lasts %s.", utc(open.Start), window.FormatDuration(open.Length()))
	} else {
		detail += " None of the next ten years is open."
	}
	w.diags.AddAttributeWarning(w.at, "The next "+w.what+" is frozen", detail)
	return true
}

// isFrozen reports whether the next window is completely frozen.
func isFrozen(plan window.Schedule, now time.Time) bool {
	unfrozen := plan
	unfrozen.Freezes = nil
	closed, ok := unfrozen.Next(now)
	if !ok {
		return false
	}
	open, ok := plan.Next(now)
	return !ok || !open.Start.Before(closed.End)
}

// moved warns if a change of the clock moves the start or end of the next
// window.
func (w warnings) moved(next window.Opening) {
	if next.StartMoved() {
		w.diags.AddAttributeWarning(w.at, "A change of the clock moves the start of the next "+w.what,
			"The clock skips its start time, so it starts at the change of the clock, at "+utc(next.Start)+
				", and lasts "+window.FormatDuration(next.Length())+". A duration is always elapsed time.")
	}
	if next.EndMoved() {
		w.diags.AddAttributeWarning(w.at, "A change of the clock moves the end of the next "+w.what,
			"It lasts "+window.FormatDuration(next.Length())+" of elapsed time, from "+utc(next.Start)+" to "+utc(next.End)+
				". The clock changes in between, so it ends at another wall-clock time than usual.")
	}
}

// short warns if the next window is shorter than any run so far.
func (w warnings) short(next window.Opening, least time.Duration) {
	if next.Length() >= least {
		return
	}
	w.diags.AddAttributeWarning(w.at, "The next "+w.what+" is shorter than any run so far",
		fmt.Sprintf("It lasts %s, from %s to %s; the shortest of the completed runs took %s. A run that has not finished at the end of its window stays partial.",
			window.FormatDuration(next.Length()), utc(next.Start), utc(next.End), window.FormatDuration(least)))
}

func utc(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
