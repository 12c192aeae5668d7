package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// warning is something in what files declare that is valid, and hardly meant.
type warning struct {
	v1.IntentWarning
	// Path is the path in the text of what the warning is about.
	Path string `json:"path"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// String returns the warning as compilers print theirs.
func (w warning) String() string {
	return fmt.Sprintf("%s:%d: warning: %s: %s", w.File, w.Line, w.Path, w.Text)
}

// placed finds where warnings are in what declares them.
func placed(want intent.Intent, found []v1.IntentWarning) []warning {
	all := make([]warning, len(found))
	for i, f := range found {
		key := keyOf(f)
		all[i] = warning{IntentWarning: f, Path: want.Path(key, f.Field)}
		all[i].File, all[i].Line = want.Place(key, f.Field)
	}
	return all
}

// once returns warnings without those that an earlier one tells already. A budget and a stage that let
// different numbers of hosts leave service are warned of as parts of both.
func once(all []warning) (kept []warning) {
	for _, w := range all {
		if !slices.ContainsFunc(kept, func(k warning) bool { return k == w || k.SameLimits(w.IntentWarning) }) {
			kept = append(kept, w)
		}
	}
	return kept
}

// keyOf returns the object that a warning is about.
func keyOf(w v1.IntentWarning) intent.Key {
	switch kind, name, _ := strings.Cut(w.Object, "."); kind {
	case v1.EnvironmentsObject:
		return intent.Key{Kind: intent.Environment, Name: name}
	case "budgets":
		return intent.Key{Kind: intent.Budget, Name: name}
	case v1.ReleasesObject:
		return intent.Key{Kind: intent.Release, Name: name}
	}
	return intent.Key{Kind: intent.Kind(w.Object)}
}

// showPlaced prints warnings.
func showPlaced(to *terminal, all []warning) {
	for _, w := range all {
		to.line(to.paint(yellow, w.String()))
	}
}

// withoutWindows warns of a configuration that leaves a tenant without any window, as the
// site's calendars and environments are. Without an answer it warns of nothing: a calendar may open,
// and an environment may have windows of its own.
func (d *siteIntent) withoutWindows(ctx context.Context, want intent.Intent, now time.Time) []v1.IntentWarning {
	if opens(*want.Config, nil, now) {
		return nil
	}
	calendars, err := d.api.CalendarsInForce(ctx, d.tenant)
	if err != nil {
		return nil
	}
	for key := range want.Deletions {
		if key.Kind == intent.Calendar {
			delete(calendars, key.Name)
		}
	}
	maps.Copy(calendars, want.Calendars)
	if opens(*want.Config, calendars, now) || d.environmentsOpen(ctx, want) {
		return nil
	}
	return []v1.IntentWarning{{
		Object: v1.ConfigObject, Field: "maintenance-windows",
		Text: "no window opens in the next ten years, so no run starts by itself",
	}}
}

// environmentsOpen reports whether an environment has windows of its own once a text is written, or
// whether the site does not tell.
func (d *siteIntent) environmentsOpen(ctx context.Context, want intent.Intent) bool {
	before, err := d.environmentsOfSite(ctx)
	all := slices.Collect(maps.Values(environmentsAfter(before, want)))
	return err != nil || slices.ContainsFunc(all, v1.Environment.HasWindows)
}

// opens reports whether a window lies ahead, whatever freezes it. Values that are wrong are
// the site's to refuse, and what is at a URL may open.
func opens(config v1.OSUpgrade, calendars map[string]v1.Calendar, now time.Time) bool {
	for _, c := range calendars {
		if c.URL != "" && c.Kind == string(calendar.Allow) {
			return true
		}
	}
	schedule, err := v1.ScheduleOf(config, calendars, time.UTC)
	schedule.Freezes = nil
	_, ahead := schedule.Next(now)
	return err != nil || ahead
}

// showUnmatched prints what of the intent matches no known host, and what is to be seen to of
// environments, releases and disruption budgets.
func showUnmatched(to *terminal, state v1.State) {
	var others, environments, releases, budgets []string
	for _, w := range state.IntentWarnings {
		kind, _, _ := strings.Cut(w.Object, ".")
		switch {
		case kind == v1.EnvironmentsObject:
			environments = append(environments, w.String())
		case kind == v1.ReleasesObject:
			releases = append(releases, w.String())
		case w.OfBudget():
			budgets = append(budgets, w.String())
		default:
			others = append(others, w.String())
		}
	}
	warn := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		to.line("")
		to.line(to.paint(yellow, title))
		for _, line := range lines {
			to.line("  " + line)
		}
	}
	warn("Declared, but matching no known host:", others)
	warn("Environments to look at:", environments)
	warn("Releases to look at:", releases)
	warn("Disruption budgets to look at:", budgets)
}
