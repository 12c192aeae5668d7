package v1

import (
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
		"a host that is none":       {Environment{Match: Match{Hosts: []string{"-"}}}, []string{"match.hosts[0]"}},
		"a window that is none":     {Environment{Match: basel, MaintenanceWindows: []MaintenanceWindow{{StartTime: "02:00", Duration: "2h", DaysOfWeek: "Someday"}}}, []string{"maintenance-windows[0].days-of-week"}},
		"a calendar that is none":   {Environment{Match: basel, Calendars: []string{"shop", "Shop"}}, []string{"calendars[1]"}},
		"too many calendars":        {Environment{Match: basel, Calendars: slices.Repeat([]string{"shop"}, MaxCalendars+1)}, []string{"calendars"}},
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
