package controller

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// at is a window of each night.
func at(hour string) []v1.MaintenanceWindow {
	return []v1.MaintenanceWindow{{DaysOfWeek: "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday", StartTime: hour, Timezone: "UTC", Duration: "1h"}}
}

// opens is a calendar that opens a window at noon of 21 November 2026 plus some time.
func opens(kind, start string) *v1.Calendar {
	return &v1.Calendar{Kind: kind, Events: []v1.Event{{Start: "2026-11-21T" + start, Duration: "1h", Timezone: "UTC"}}}
}

// TestAgendas checks when the runs of each environment may be under way, and what holds them up.
func TestAgendas(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	basel := v1.Match{Labels: map[string]string{"shop": "basel"}}
	declared := func(name string, e v1.Environment) store.Seen {
		e.Match = basel
		return store.Seen{Object: store.Object{Kind: store.Environment, Name: name}, Environment: &e, At: now}
	}
	tenant := []store.Seen{{Object: theConfig, Config: &v1.OSUpgrade{MaintenanceWindows: at("20:00")}, At: now}}
	for name, row := range map[string]struct {
		seen []store.Seen
		// next are the times of the next windows of default and of basel; empty is none.
		next, basel string
		// hold and holdBasel are who holds up their runs.
		hold, holdBasel string
	}{
		"the tenant's windows":        {[]store.Seen{declared("basel", v1.Environment{})}, "20:00", "20:00", "", ""},
		"windows of its own":          {[]store.Seen{declared("basel", v1.Environment{MaintenanceWindows: at("22:00")})}, "20:00", "22:00", "", ""},
		"no windows at all":           {[]store.Seen{declared("basel", v1.Environment{MaintenanceWindows: []v1.MaintenanceWindow{}})}, "20:00", "", "", ""},
		"a calendar of its own":       {[]store.Seen{{Object: calendarNamed("sale"), Calendar: opens("allow", "15:00"), At: now}, declared("basel", v1.Environment{Calendars: []string{"sale"}})}, "20:00", "15:00", "", ""},
		"a calendar of the tenant":    {[]store.Seen{{Object: calendarNamed("sale"), Calendar: opens("allow", "15:00"), At: now}, declared("basel", v1.Environment{MaintenanceWindows: at("22:00")})}, "15:00", "22:00", "", ""},
		"a freeze of the tenant":      {[]store.Seen{declared("basel", v1.Environment{MaintenanceWindows: at("22:00")}), {Object: calendarNamed("stop"), Calendar: opens("freeze", "22:00"), At: now}}, "20:00", "22:00 tomorrow", "", ""},
		"it is deleted":               {[]store.Seen{declared("basel", v1.Environment{MaintenanceWindows: at("22:00")}), {Object: store.Object{Kind: store.Environment, Name: "basel"}, At: now}}, "20:00", "", "", ""},
		"its rollout is paused":       {[]store.Seen{declared("basel", v1.Environment{Rollout: &v1.Rollout{Paused: true}})}, "20:00", "20:00", "", "rollout"},
		"the tenant's is paused":      {[]store.Seen{{Object: theRollout, Rollout: &v1.Rollout{Paused: true}, At: now}, declared("basel", v1.Environment{Rollout: &v1.Rollout{}})}, "20:00", "20:00", "rollout", "rollout"},
		"another cannot be read":      {[]store.Seen{declared("basel", v1.Environment{MaintenanceWindows: at("22:00")}), declared("bern", v1.Environment{MaintenanceWindows: at("25:00")})}, "", "", "agent", "agent"},
		"it is called default":        {[]store.Seen{declared("basel", v1.Environment{}), declared("default", v1.Environment{})}, "", "", "agent", "agent"},
		"the other is right again":    {[]store.Seen{declared("basel", v1.Environment{}), declared("bern", v1.Environment{MaintenanceWindows: at("25:00")}), declared("bern", v1.Environment{})}, "20:00", "20:00", "", ""},
		"no configuration any longer": {[]store.Seen{declared("basel", v1.Environment{MaintenanceWindows: at("22:00")}), {Object: theConfig, At: now}}, "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIntent(Options{Now: func() time.Time { return now }, Tenant: "acme", Zone: time.UTC, Logger: slog.New(slog.DiscardHandler)})
			for _, seen := range append(tenant, row.seen...) {
				i.set(seen)
			}
			for environment, want := range map[string]struct{ next, hold string }{"": {row.next, row.hold}, "basel": {row.basel, row.holdBasel}} {
				opening, found := i.of(environment).nextOpening(now)
				next := ""
				if found {
					next = opening.Start.Format("15:04") + map[bool]string{true: " tomorrow"}[opening.Start.Day() != now.Day()]
				}
				if next != want.next {
					t.Errorf("the next window of %s is %q; want %q", nameOf(environment), next, want.next)
				}
				held := i.hold(environment)
				if (held == nil) != (want.hold == "") || held != nil && !strings.Contains(held.By, want.hold) {
					t.Errorf("runs of %s are held up by %+v; want %q", nameOf(environment), held, want.hold)
				}
			}
		})
	}
}
