package v1

import "testing"

// TestHolds tells the changes that can only hold runs from those that do anything else.
func TestHolds(t *testing.T) {
	t.Parallel()
	pause := Rollout{Paused: true}
	basel := Environment{Match: Match{Hosts: []string{"h01"}}, Rollout: &Rollout{MaxFailures: "2"}}
	paused, other, none, moved := basel, basel, basel, basel
	paused.Rollout = &Rollout{MaxFailures: "2", Paused: true}
	other.Rollout = &Rollout{MaxFailures: "3", Paused: true}
	none.Rollout = nil
	moved.Match, moved.Rollout = Match{Hosts: []string{"h02"}}, paused.Rollout
	day := func(start string) Event { return Event{Start: start, AllDay: true, RDate: []string{"2026-12-31"}} }
	calendar := func(kind string, events ...Event) Calendar { return Calendar{Kind: kind, Events: events} }
	described := calendar("freeze", day("2026-12-24"), day("2026-12-25"))
	described.Description = "Christmas"
	for name, row := range map[string]struct{ is, want bool }{
		"a pause":                       {OnlyPauses(Rollout{}, pause), true},
		"the end of a pause":            {OnlyPauses(pause, Rollout{}), true},
		"a default that is written out": {OnlyPauses(Rollout{}, Rollout{Paused: true, OnFailure: "stop"}), true},
		"a pause and more":              {OnlyPauses(Rollout{}, Rollout{Paused: true, OnFailure: "continue"}), false},
		"no freeze of changes":          {OnlyPauses(Rollout{FreezeChanges: true}, pause), false},

		"a pause of an environment":                {OnlyPausesEnvironment(basel, paused), true},
		"a pause of an environment and more":       {OnlyPausesEnvironment(basel, other), false},
		"an environment without its rollout":       {OnlyPausesEnvironment(basel, none), false},
		"an environment that gets one":             {OnlyPausesEnvironment(none, paused), false},
		"a pause of an environment, and its hosts": {OnlyPausesEnvironment(basel, moved), false},

		"a further event":            {OnlyFreezes(calendar("freeze", day("2026-12-24")), calendar("freeze", day("2026-12-25"), day("2026-12-24"))), true},
		"an event less":              {OnlyFreezes(calendar("freeze", day("2026-12-24"), day("2026-12-25")), calendar("freeze", day("2026-12-24"))), false},
		"another event":              {OnlyFreezes(calendar("freeze", day("2026-12-24")), calendar("freeze", day("2026-12-25"))), false},
		"a further event and more":   {OnlyFreezes(calendar("freeze", day("2026-12-24")), described), false},
		"a further event that opens": {OnlyFreezes(calendar("allow", day("2026-12-24")), calendar("allow", day("2026-12-24"), day("2026-12-25"))), false},
		"what opened closes now":     {OnlyFreezes(calendar("allow", day("2026-12-24")), calendar("freeze", day("2026-12-24"))), false},
		"what closed opens now":      {OnlyFreezes(calendar("freeze", day("2026-12-24")), calendar("allow", day("2026-12-24"))), false},
	} {
		if row.is != row.want {
			t.Errorf("%s: it only holds runs: %t", name, row.is)
		}
	}
}
