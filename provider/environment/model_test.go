package environment

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// declared is an environment with every member, as the attributes have them: the days are a set.
const declared = `{
  "description": "Shop in Basel",
  "match": {"hosts": ["h01"], "labels": {"shop": "basel", "days-of-week": "Monday"}, "roles": ["till"], "applications": ["a"]},
  "maintenance-windows": [
    {"days-of-week": ["Monday", "tuesday"], "start-time": "02:00", "timezone": "Europe/Zurich", "duration": "180m"},
    {"days-of-week": ["Friday"], "start-time": "23:00", "timezone": "site-local", "duration": "1h"}],
  "calendars": ["inventory", "stocktaking"],
  "after": {"environments": ["canary", "pilot"], "soak": "24h"},
  "releases": {"os": "nov"},
  "rollout": {"max-failures": "2", "stages": [{"name": "all", "max-unavailable": "2", "soak": "60m"}], "timeouts": {"reboot": "1200s"}}}`

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		t.Fatal(err)
	}
	return members
}

// planned returns a model that declares text and the defaults, as a plan does.
func planned(t *testing.T, text string) (m model) {
	t.Helper()
	var diags diag.Diagnostics
	kind.Declare(t.Context(), &m.Declaration, kind.Filled(parse(t, text)), &diags)
	healthy(t, diags)
	return m
}

func healthy(t *testing.T, diags diag.Diagnostics) {
	t.Helper()
	if diags.HasError() {
		t.Fatal(diags)
	}
}

func TestToAPI(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		declared string
		want     v1.Environment
	}{
		"everything": {declared, v1.Environment{
			Description: "Shop in Basel",
			Match:       v1.Match{Hosts: []string{"h01"}, Labels: map[string]string{"shop": "basel", "days-of-week": "Monday"}, Roles: []string{"till"}, Applications: []string{"a"}},
			MaintenanceWindows: []v1.MaintenanceWindow{
				{DaysOfWeek: "Monday, Tuesday", StartTime: "02:00", Timezone: "Europe/Zurich", Duration: "180m"},
				{DaysOfWeek: "Friday", StartTime: "23:00", Timezone: "site-local", Duration: "1h"},
			},
			Calendars: []string{"inventory", "stocktaking"},
			After:     &v1.After{Environments: []string{"canary", "pilot"}, Soak: "24h"},

			Target:  release.Target{Releases: map[string]string{"os": "nov"}},
			Rollout: &v1.Rollout{MaxFailures: "2", Stages: []v1.Stage{{Name: "all", MaxUnavailable: "2", Soak: "60m"}}, Timeouts: &v1.CommandTimeouts{Reboot: "1200s"}},
		}},
		"what is absent is the tenant's": {`{"match": {"hosts": ["h01"]}}`, v1.Environment{Match: v1.Match{Hosts: []string{"h01"}}}},
		"nothing is not absent": {
			`{"match": {"hosts": ["h01"]}, "maintenance-windows": [], "calendars": [], "rollout": {}}`,
			v1.Environment{Match: v1.Match{Hosts: []string{"h01"}}, MaintenanceWindows: []v1.MaintenanceWindow{}, Calendars: []string{}, Rollout: &v1.Rollout{}},
		},
	} {
		var diags diag.Diagnostics
		m := planned(t, row.declared)
		got := m.ToAPI(t.Context(), &diags)
		healthy(t, diags)
		if !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, row.want)
		}
	}
}

// TestFromAPI_keepsWhatIsDeclared: another form of the same environment is no change.
func TestFromAPI_keepsWhatIsDeclared(t *testing.T) {
	t.Parallel()
	for name, show := range map[string]func(v1.Environment) v1.Environment{
		"as it is":  func(e v1.Environment) v1.Environment { return e },
		"canonical": v1.Environment.Canonical,
		"meaning":   meaning,
		"no site-local": func(e v1.Environment) v1.Environment {
			for i := range e.MaintenanceWindows {
				if e.MaintenanceWindows[i].Timezone == "site-local" {
					e.MaintenanceWindows[i].Timezone = ""
				}
			}
			return e
		},
	} {
		for what, text := range map[string]string{
			"everything": declared,
			"only match": `{"match": {"labels": {"shop": "basel"}}}`,
			"nothing":    `{"match": {"hosts": ["h01"], "roles": []}, "maintenance-windows": [], "calendars": [], "rollout": {"stages": [], "paused": false}}`,
		} {
			var diags diag.Diagnostics
			m := planned(t, text)
			before := kind.Declared(t.Context(), m.Declaration, &diags)
			m.FromAPI(t.Context(), show(m.ToAPI(t.Context(), &diags)), false, &diags)
			after := kind.Declared(t.Context(), m.Declaration, &diags)
			healthy(t, diags)
			if !reflect.DeepEqual(before, after) {
				t.Errorf("%s, %s: got %v, want %v", name, what, after, before)
			}
		}
	}
}

// TestFromAPI_seesEveryEdit: after a read the model has the meaning of the server's environment, and
// differs from before only in the edited member.
func TestFromAPI_seesEveryEdit(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]struct {
		member string
		do     func(*v1.Environment)
	}{
		"description": {"description", func(e *v1.Environment) { e.Description = "" }},
		"hosts":       {"match", func(e *v1.Environment) { e.Match.Hosts = append(e.Match.Hosts, "h02") }},
		"a label":     {"match", func(e *v1.Environment) { e.Match.Labels["days-of-week"] = "Tuesday" }},
		"days":        {"maintenance-windows", func(e *v1.Environment) { e.MaintenanceWindows[0].DaysOfWeek = "Sunday" }},
		"a window added": {"maintenance-windows", func(e *v1.Environment) {
			e.MaintenanceWindows = append(e.MaintenanceWindows, v1.MaintenanceWindow{DaysOfWeek: "Sunday", StartTime: "01:00", Timezone: "UTC", Duration: "1h"})
		}},
		"a window removed":  {"maintenance-windows", func(e *v1.Environment) { e.MaintenanceWindows = e.MaintenanceWindows[1:] }},
		"windows absent":    {"maintenance-windows", func(e *v1.Environment) { e.MaintenanceWindows = nil }},
		"calendars":         {"calendars", func(e *v1.Environment) { e.Calendars = []string{"other"} }},
		"no calendars":      {"calendars", func(e *v1.Environment) { e.Calendars = nil }},
		"a stage":           {"rollout", func(e *v1.Environment) { e.Rollout.Stages[0].Soak = "2h" }},
		"paused":            {"rollout", func(e *v1.Environment) { e.Rollout.Paused = true }},
		"a time limit":      {"rollout", func(e *v1.Environment) { e.Rollout.Timeouts = nil }},
		"what comes before": {"after", func(e *v1.Environment) { e.After = &v1.After{Environments: []string{"canary"}, Soak: "24h"} }},
		"soak":              {"after", func(e *v1.Environment) { e.After = &v1.After{Environments: e.After.Environments} }},
		"after nobody":      {"after", func(e *v1.Environment) { e.After = nil }},
		"rollout absent":    {"rollout", func(e *v1.Environment) { e.Rollout = nil }},
	} {
		var diags diag.Diagnostics
		m := planned(t, declared)
		before := kind.Declared(t.Context(), m.Declaration, &diags)
		server := m.ToAPI(t.Context(), &diags)
		edit.do(&server)
		m.FromAPI(t.Context(), server, false, &diags)
		after := kind.Declared(t.Context(), m.Declaration, &diags)
		healthy(t, diags)
		if !kind.Same(m.ToAPI(t.Context(), &diags), server) {
			t.Errorf("%s: got %v, want what the server has", name, after)
		}
		for member, was := range before {
			if changed := !reflect.DeepEqual(after[member], was); changed != (member == edit.member) {
				t.Errorf("%s: %s is %v and was %v", name, member, after[member], was)
			}
		}
	}
}

// TestSame_ignoresOrder: what is a set in Terraform has no order.
func TestSame_ignoresOrder(t *testing.T) {
	t.Parallel()
	a := v1.Environment{Match: v1.Match{Hosts: []string{"h01", "h02"}, Roles: []string{"a", "b"}, Applications: []string{"x", "y"}}, Calendars: []string{"p", "q"}}
	b := v1.Environment{Match: v1.Match{Hosts: []string{"h02", "h01"}, Roles: []string{"b", "a"}, Applications: []string{"y", "x"}}, Calendars: []string{"q", "p"}}
	if !kind.Same(a, b) || !v1.SameEnvironment(a, b) {
		t.Error("another order of sets is a change")
	}
	if b.Calendars = nil; kind.Same(a, b) || kind.Same(v1.Environment{Calendars: []string{}}, v1.Environment{}) {
		t.Error("absent calendars are the same as some, or as none")
	}
}

// TestLocate: the server names members, a diagnostic the attribute.
func TestLocate(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]path.Path{
		"name":                                path.Root("name"),
		"match":                               path.Root("match"),
		"match.labels.shop":                   path.Root("match").AtName("labels"),
		"match.hosts[1]":                      path.Root("match").AtName("hosts"),
		"maintenance-windows[1].start-time":   path.Root("maintenance_windows").AtListIndex(1).AtName("start_time"),
		"maintenance-windows[1].days-of-week": path.Root("maintenance_windows").AtListIndex(1).AtName("days_of_week"),
		"calendars[0]":                        path.Root("calendars"),
		"rollout.timeouts.reboot":             path.Root("rollout").AtName("command_timeouts").AtName("reboot"),
		"rollout.stages[2].max-unavailable":   path.Root("rollout").AtName("stages").AtListIndex(2).AtName("max_unavailable"),
	} {
		if got, ok := kind.Locate(field); !ok || !got.Equal(want) {
			t.Errorf("%s is located at %s, %t, want %s", field, got, ok, want)
		}
	}
}
