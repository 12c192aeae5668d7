// Package nextwindow warns at plan time about the next window: there is none, it
// is completely frozen, it is shorter than any run so far, or a change of the
// clock moves it.
//
// It decides what deserves a warning and never fails a plan. It omits warnings
// for which the server does not answer. It does not know the site's time zone
// and takes UTC for site-local.
package nextwindow

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
)

// kindFreeze is the kind of calendars whose events close.
const kindFreeze = "freeze"

// WarnOfConfig warns about the next window of a configuration, with the tenant's
// calendars. It makes at most two requests.
func WarnOfConfig(ctx context.Context, api *client.Client, now time.Time, at tenantresource.Key, want v1.OSUpgrade, diags *diag.Diagnostics) {
	if want.MaintenanceWindows == nil {
		return // Not managed by this resource.
	}
	calendars, known := calendarsOf(ctx, api, at.Tenant)
	if len(want.MaintenanceWindows) == 0 && !known {
		return // An unknown calendar may open.
	}
	plan, err := v1.ScheduleOf(want, calendars, time.UTC)
	if err != nil {
		return // A calendar of a newer server.
	}
	w := warnings{path.Root("maintenance_windows"), "window", now, diags}
	if w.none(plan) || w.frozen(plan) {
		return
	}
	next, _ := plan.Next(now)
	w.moved(next)
	w.short(next, shortest(ctx, api, at.Tenant))
}

// WarnOfCalendar warns about the next event of a calendar, with the tenant's
// freezes. For a freeze it warns about the next window of the tenant's
// configuration. It makes at most two requests.
func WarnOfCalendar(ctx context.Context, api *client.Client, now time.Time, at tenantresource.Key, want v1.Calendar, diags *diag.Diagnostics) {
	where := path.Root("events")
	if want.ICS != nil {
		where = path.Root("ics")
	}
	parsed, wrong := want.Parse(at.Name)
	if len(wrong) > 0 {
		return
	}
	w := warnings{where, "event of calendar " + at.Name, now, diags}
	for _, problem := range parsed.LeftOut() {
		diags.AddAttributeWarning(where, "Part of the iCalendar text is left out", problem.Error())
	}
	alone := window.Schedule{Allow: []window.Calendar{parsed}}
	if w.none(alone) {
		return
	}
	next, _ := alone.Next(now)
	w.moved(next)
	others, _ := calendarsOf(ctx, api, at.Tenant)
	delete(others, at.Name)
	if want.Kind == kindFreeze {
		freezes(ctx, api, at, want, others, w)
		return
	}
	plan, err := v1.ScheduleOf(v1.OSUpgrade{}, onlyFreezes(others, at.Name, want), time.UTC)
	if err != nil || w.frozen(plan) {
		return
	}
	next, _ = plan.Next(now)
	w.short(next, shortest(ctx, api, at.Tenant))
}

// freezes warns if a freeze closes a next window that is open without it.
func freezes(ctx context.Context, api *client.Client, at tenantresource.Key, freeze v1.Calendar, others map[string]v1.Calendar, w warnings) {
	if api == nil {
		return
	}
	config, _, err := api.Config(ctx, at.Tenant)
	if err != nil {
		return
	}
	without, err := v1.ScheduleOf(config, others, time.UTC)
	if err != nil || isFrozen(without, w.now) {
		return
	}
	with := maps.Clone(others)
	with[at.Name] = freeze
	w.what = "window"
	if plan, err := v1.ScheduleOf(config, with, time.UTC); err == nil {
		w.frozen(plan)
	}
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
	calendars, err := api.CalendarContents(ctx, tenant)
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
	plan.Freezes = nil
	if _, ok := plan.Next(w.now); ok {
		return false
	}
	w.diags.AddAttributeWarning(w.at, "No "+w.what+" lies ahead",
		"From "+utc(w.now)+" on, for the next ten years, there is no "+w.what+".")
	return true
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
		detail += fmt.Sprintf(" no run may be under way: calendar %s", by.Calendar)
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
