package v1

import (
	"fmt"
	"slices"
	"testing"
)

// TestEnvironment checks what an environment may not have, each with its path.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	basel := Match{Labels: map[string]string{"shop": "basel"}}
	for name, row := range map[string]struct {
		environment Environment
		wrong       []string
	}{
		"labels":                    {Environment{Match: basel}, nil},
		"no hosts":                  {Environment{}, []string{"match"}},
		"a calendar twice":          {Environment{Match: basel, Calendars: []string{"shop", "shop"}}, []string{"calendars[1]"}},
		"lines in a description":    {Environment{Match: basel, Description: "a\nb"}, []string{"description"}},
		"a host that is none":       {Environment{Match: Match{Hosts: []string{"-"}}}, []string{"match.hosts[0]"}},
		"a window that is none":     {Environment{Match: basel, MaintenanceWindows: []MaintenanceWindow{{StartTime: "02:00", Duration: "2h", DaysOfWeek: "Someday"}}}, []string{"maintenance-windows[0].days-of-week"}},
		"a calendar that is none":   {Environment{Match: basel, Calendars: []string{"shop", "Shop"}}, []string{"calendars[1]"}},
		"too many calendars":        {Environment{Match: basel, Calendars: manyNames(MaxCalendars + 1)}, []string{"calendars"}},
		"a value of its rollout":    {Environment{Match: basel, Rollout: &Rollout{OnFailure: "panic"}}, []string{"rollout.on-failure"}},
		"a rollout without members": {Environment{Match: basel, Rollout: &Rollout{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fields []string
			for _, p := range row.environment.Validate() {
				fields = append(fields, p.Field)
			}
			if !slices.Equal(fields, row.wrong) {
				t.Errorf("these are wrong: %q; want %q", fields, row.wrong)
			}
		})
	}
}

func manyNames(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("n%d", i))
	}
	return all
}

// TestEnvironmentNames checks which names an environment may have.
func TestEnvironmentNames(t *testing.T) {
	t.Parallel()
	for name, right := range map[string]bool{"basel": true, "default": false, "Basel": false, "": false} {
		if wrong := EnvironmentName(name); (wrong == "") != right {
			t.Errorf("%q: %q", name, wrong)
		}
	}
}

// TestSameEnvironment checks that neither spelling nor order counts, and what does.
func TestSameEnvironment(t *testing.T) {
	t.Parallel()
	night := func(day, start string) MaintenanceWindow {
		return MaintenanceWindow{DaysOfWeek: day, StartTime: start, Duration: "2h"}
	}
	basel := Environment{Match: Match{Hosts: []string{"a", "b"}}, Calendars: []string{"x", "y"}, MaintenanceWindows: []MaintenanceWindow{night("Monday", "02:00"), night("Friday", "02:00")}}
	for what, row := range map[string]struct {
		other Environment
		same  bool
	}{
		"another order and spelling": {Environment{Match: Match{Hosts: []string{"b", "a"}}, Calendars: []string{"y", "x"}, MaintenanceWindows: []MaintenanceWindow{night("friday", "02:00"), night("monday", "02:00")}}, true},
		"other hosts":                {Environment{Match: Match{Hosts: []string{"a"}}, Calendars: basel.Calendars, MaintenanceWindows: basel.MaintenanceWindows}, false},
		"windows of the tenant":      {Environment{Match: basel.Match, Calendars: basel.Calendars}, false},
		"no calendar":                {Environment{Match: basel.Match, Calendars: []string{}, MaintenanceWindows: basel.MaintenanceWindows}, false},
		"a rollout":                  {Environment{Match: basel.Match, Calendars: basel.Calendars, MaintenanceWindows: basel.MaintenanceWindows, Rollout: &Rollout{}}, false},
	} {
		if SameEnvironment(basel, row.other) != row.same {
			t.Errorf("%s: it is the same or not, other than thought", what)
		}
	}
	if SameEnvironment(Environment{Match: basel.Match, Calendars: []string{}}, Environment{Match: basel.Match}) {
		t.Error("no calendar at all is taken for those of the tenant")
	}
}
