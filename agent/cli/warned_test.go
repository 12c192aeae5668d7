package cli

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const unmatchedText = `config:
  worker-applications:
    - name: appliance
    - name: applianse
  maintenance-windows:
    - {days-of-week: Friday, start-time: 01:00, timezone: UTC, duration: 4h}
---
rollout:
  stages:
    - name: canary
      match:
        labels:
          rack: c
    - name: rest
`

// TestWarnedOfUnmatched checks that validate --server, apply and status say what matches no
// known host, at its place in the file, and that it is written all the same.
func TestWarnedOfUnmatched(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	file := writeIn(t, t.TempDir())("fleet.yaml", unmatchedText)
	do := func(want bool, parts []string, args ...string) {
		t.Helper()
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", args...)...)
		if code != exitOK {
			t.Errorf("%q: exit code %d:\n%s", args, code, stderr)
		}
		for _, part := range parts {
			if strings.Contains(stdout, part) != want {
				t.Errorf("%q: that there is %q is not %t:\n%s", args, part, want, stdout)
			}
		}
	}
	placed := []string{
		file + `:4: warning: config.worker-applications[1].name: no known host has application "applianse"; did you mean appliance?` + "\n",
		file + `:13: warning: rollout.stages[0].match.labels.rack: no known host has "c" as label rack; hosts have a` + "\n",
	}
	do(false, []string{"warning"}, "validate", "--server", "-f", file)
	s.SetHosts("acme", v1.Host{Hostname: "h01", Application: "appliance", Labels: map[string]string{"rack": "a"}})
	do(true, placed, "validate", "--server", "-f", file)
	do(true, append(placed, "Nothing was written"), "apply", "-f", file, "--dry-run")
	do(true, append(placed, "Written, in this order: rollout, config."), "apply", "-f", file)
	do(true, append(placed, "Nothing to write"), "apply", "-f", file)
	do(true, []string{
		`"object": "config",`, `"path": "config.worker-applications[1].name",`, `"field": "worker-applications[1].name",`, `"line": 4`, `"text": "no known host has application \"applianse\"`,
	}, "apply", "-f", file, "-o", "json")
	do(true, []string{
		"Declared, but matching no known host:\n" +
			`  config.worker-applications[1].name: no known host has application "applianse"; did you mean appliance?` + "\n" +
			`  rollout.stages[0].match.labels.rack: no known host has "c" as label rack; hosts have a` + "\n",
	}, "status")
	do(true, []string{`"intent-warnings": [`}, "status", "-o", "json")
	s.SetHosts("acme", v1.Host{Hostname: "h01", Application: "appliance", Labels: map[string]string{"rack": "c"}}, v1.Host{Hostname: "h02", Application: "applianse"})
	do(false, []string{"warning"}, "apply", "-f", file)
	do(false, []string{"Declared", "intent-warnings"}, "status")
}

// TestWarnedOfNoWindow checks that a file which leaves all windows out is warned of, unless a
// calendar opens or an environment has windows of its own.
func TestWarnedOfNoWindow(t *testing.T) {
	t.Parallel()
	const none = "config:\n  worker-applications: [{name: appliance}]\n"
	const warning = "warning: config.maintenance-windows: no window opens in the next ten years, so no run starts by itself\n"
	allow := v1.Calendar{Kind: "allow", Events: []v1.Event{{Start: "2026-01-01", AllDay: true, RRule: "FREQ=MONTHLY"}}}
	freeze := v1.Calendar{Kind: "freeze", Events: []v1.Event{{Start: "2026-01-01", AllDay: true, RRule: "FREQ=DAILY"}}}
	shop := v1.Environment{Match: v1.Match{Labels: map[string]string{"shop": "basel"}}}
	open := shop
	open.MaintenanceWindows = []v1.MaintenanceWindow{{DaysOfWeek: "Sunday", StartTime: "02:00", Timezone: "UTC", Duration: "2h"}}
	environments := map[string]v1.Environment{
		"the site's environment": open, "an environment with the tenant's windows": shop, "an environment that is deleted": open, "an environment that loses its windows": open,
	}
	const basel = "environments: {basel: {match: {labels: {shop: basel}}"
	for name, row := range map[string]struct {
		calendars map[string]v1.Calendar
		text      string
		want      bool
	}{
		"the site's environment":                   {nil, none, false},
		"an environment with the tenant's windows": {nil, none, true},
		"an environment of the file":               {nil, none + basel + ", maintenance-windows: [{days-of-week: Sunday, start-time: '02:00', duration: 2h}]}}\n", false},
		"an environment that names a calendar":     {nil, none + basel + ", calendars: [nights]}}\ncalendars: {nights: {kind: allow, events: [{start: 2026-01-01, all-day: true, rrule: FREQ=MONTHLY}]}}\n", false},
		"an environment that is deleted":           {nil, none + "environments: {basel: null}\n", true},
		"an environment that loses its windows":    {nil, none + basel + "}}\n", true},

		"no window":                        {nil, none, true},
		"an empty list":                    {nil, none + "  maintenance-windows: []\n", true},
		"a window":                         {nil, strings.Split(unmatchedText, "---")[0], false},
		"a frozen window":                  {map[string]v1.Calendar{"shop": freeze}, strings.Split(unmatchedText, "---")[0], false},
		"the site's calendar":              {map[string]v1.Calendar{"nights": allow}, none, false},
		"a calendar of the file":           {nil, none + "calendars: {nights: {kind: allow, events: [{start: 2026-01-01, all-day: true, rrule: FREQ=MONTHLY}]}}\n", false},
		"a calendar of the file, at a URL": {nil, none + "calendars: {nights: {kind: allow, url: 'https://calendar.example/a.ics'}}\n", false},
		"a freeze of the file, at a URL":   {nil, none + "calendars: {nights: {kind: freeze, url: 'https://calendar.example/a.ics'}}\n", true},
		"a calendar that is deleted":       {map[string]v1.Calendar{"nights": allow}, none + "calendars: {nights: null}\n", true},
		"the file leaves the config be":    {nil, "rollout: {max-failures: 1}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakeapi.New(t)
			s.SetConfig("acme", v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Friday", StartTime: "01:00", Timezone: "UTC", Duration: "4h"}}})
			for name, c := range row.calendars {
				s.SetCalendar("acme", name, c)
			}
			if e, some := environments[name]; some {
				s.SetEnvironment("acme", "basel", e)
			}
			for _, args := range [][]string{{"validate", "--server", "-f", "-"}, {"apply", "-f", "-"}} {
				code, stdout, stderr := callWith(t, row.text, as(t, s.URL, s.Token, "acme", args...)...)
				if code != exitOK || strings.Contains(stdout, ": "+warning) != row.want || strings.Contains(stdout, "warning") != row.want {
					t.Errorf("%q: exit code %d:\n%s%s", args, code, stdout, stderr)
				}
			}
			if code, stdout, stderr := callWith(t, row.text, as(t, s.URL, s.Token, "acme", "apply", "-f", "-")...); code != exitOK || strings.Contains(stdout, "warning") {
				t.Errorf("where nothing changes: exit code %d:\n%s%s", code, stdout, stderr)
			}
		})
	}
}

// TestWarnedOfUnchanged checks that apply warns of an environment and of a budget, whether they are new
// or unchanged, each once.
func TestWarnedOfUnchanged(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01", Labels: map[string]string{"shop": "basel"}})
	file := writeIn(t, t.TempDir())("shops.yaml", "environments:\n  paris: {match: {labels: {shop: paris}}}\nbudgets:\n  racks: {per: rack, max-unavailable: 1}\n")
	for _, want := range []string{"Written, in this order", "Nothing to write"} {
		_, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "apply", "-f", file)...)
		for _, part := range []string{
			want, file + `:2: warning: environments.paris.match.labels.shop: no known host has "paris" as label shop; hosts have basel` + "\n",
			file + `:4: warning: budgets.racks.per: no known host has label "rack"; hosts have shop` + "\n",
		} {
			if strings.Count(stdout, part) != 1 {
				t.Errorf("%q is not there once:\n%s%s", part, stdout, stderr)
			}
		}
	}
}

// TestOnce checks that the limits of a stage and of a budget are warned of once, if both are declared.
func TestOnce(t *testing.T) {
	t.Parallel()
	of := func(object, text string) warning {
		return warning{IntentWarning: v1.IntentWarning{Object: object, Text: text}}
	}
	const more = " lets 4 hosts leave service at once, and disruption budget racks lets 1 of 4 hosts with rack=r1; the smaller number counts"
	budget, rollout, other := of("budgets.racks", "stage rest"+more), of("rollout", "the stage"+more), of("rollout", "the stage"+strings.Replace(more, "r1", "r2", 1))
	if got := once([]warning{budget, rollout, other, other}); len(got) != 2 || got[0] != budget || got[1] != other {
		t.Errorf("left are %v", got)
	}
}

// TestStatusOfBudgetLimits checks that status does not say of a budget which lets no host go that it
// matches none.
func TestStatusOfBudgetLimits(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	showUnmatched(newTerminal(&out), v1.State{IntentWarnings: []v1.IntentWarning{{Object: "budgets.all", Field: "min-available", Text: "100% of 8 hosts must stay in service, so none can be upgraded"}}})
	if got, want := out.String(), "\nDisruption budgets to look at:\n  budgets.all.min-available: 100% of 8 hosts must stay in service, so none can be upgraded\n"; got != want {
		t.Errorf("it prints %q", got)
	}
}
