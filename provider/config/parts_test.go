package config

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func some(names ...string) v1.OSUpgrade {
	return v1.OSUpgrade{WorkerApplications: toApplications(names)}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	none, a, b, c := some(), some("a"), some("b"), some("c")
	for name, row := range map[string]struct {
		prior, server, want v1.OSUpgrade
		conflict, taken     bool
	}{
		"nobody changed it":                        {a, a, b, false, false},
		"somebody made the same change":            {a, b, b, false, false},
		"somebody made another change":             {a, c, b, true, false},
		"somebody removed it":                      {a, none, b, true, false},
		"not ours":                                 {v1.OSUpgrade{}, c, v1.OSUpgrade{}, false, false},
		"not ours any more":                        {a, c, v1.OSUpgrade{}, false, false},
		"newly ours, and nothing is there":         {v1.OSUpgrade{}, v1.OSUpgrade{}, b, false, false},
		"newly ours, and it is there as we want":   {v1.OSUpgrade{}, b, b, false, false},
		"newly ours, and there is something other": {v1.OSUpgrade{}, c, b, true, true},
		"newly ours and empty, and there is some":  {v1.OSUpgrade{}, c, none, true, true},
		"another order of the same":                {some("a", "b"), some("b", "a"), c, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := parts.Conflicts(row.prior, row.server, row.want)
			if (len(got) == 1) != row.conflict {
				t.Fatalf("got %+v, want a conflict: %v", got, row.conflict)
			}
			if row.conflict && (got[0].Unowned != row.taken || got[0].At.String() != applications) {
				t.Errorf("got %+v, want taken %v", got[0], row.taken)
			}
		})
	}
}

func drawnConfig() *rapid.Generator[v1.OSUpgrade] {
	return rapid.Custom(func(t *rapid.T) v1.OSUpgrade {
		var c v1.OSUpgrade
		if rapid.Bool().Draw(t, "applications") {
			c.WorkerApplications = toApplications(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "names"))
		}
		if rapid.Bool().Draw(t, "windows") {
			c.MaintenanceWindows = []v1.MaintenanceWindow{}
			for _, day := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"Friday", "Monday"}), 0, 2, rapid.ID).Draw(t, "days") {
				c.MaintenanceWindows = append(c.MaintenanceWindows, v1.MaintenanceWindow{DaysOfWeek: day, StartTime: "01:00", Duration: "1h"})
			}
		}
		return c
	})
}

// TestMerged_writesOwnListsAndKeepsTheOthers checks that after a write without a
// conflict the owned lists are as wanted, the other lists are unchanged, and no change
// of somebody else to an owned list is lost.
func TestMerged_writesOwnListsAndKeepsTheOthers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		prior, server, want := drawnConfig().Draw(t, "prior"), drawnConfig().Draw(t, "server"), drawnConfig().Draw(t, "want")
		after := parts.Merged(want, server)
		if !parts.InSync(want, after) {
			t.Fatalf("wrote %+v, wanted %+v", after, want)
		}
		if want.WorkerApplications == nil && !parts[0].Same(after, server) || want.MaintenanceWindows == nil && !parts[1].Same(after, server) {
			t.Fatalf("lost what others own: %+v of %+v", after, server)
		}
		var clashing []string
		for _, c := range parts.Conflicts(prior, server, want) {
			clashing = append(clashing, c.At.String())
		}
		foreign := !parts[0].Same(server, prior) && !parts[0].Same(server, after)
		if foreign && !slices.Contains(clashing, applications) {
			t.Fatalf("overwrites the foreign applications %+v", server)
		}
		foreign = !parts[1].Same(server, prior) && !parts[1].Same(server, after)
		if foreign && !slices.Contains(clashing, windows) {
			t.Fatalf("overwrites the foreign windows %+v", server)
		}
	})
}

func TestUnchanged(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		prior, want v1.OSUpgrade
		unchanged   bool
	}{
		"the same":               {some("a"), some("a"), true},
		"another":                {some("a"), some("b"), false},
		"given up":               {some("a"), v1.OSUpgrade{}, true},
		"begun":                  {v1.OSUpgrade{}, some("a"), false},
		"begun with none":        {v1.OSUpgrade{}, some(), false},
		"emptied":                {some("a"), some(), false},
		"none managed, none now": {v1.OSUpgrade{}, v1.OSUpgrade{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := parts.Unchanged(row.prior, row.want); got != row.unchanged {
				t.Errorf("got %v, want %v", got, row.unchanged)
			}
		})
	}
}

func TestRestricted(t *testing.T) {
	t.Parallel()
	server := v1.OSUpgrade{WorkerApplications: toApplications([]string{"a"}), MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Friday"}}}
	if got := parts.Restricted(server, some("x")); !parts[0].Same(got, server) || got.MaintenanceWindows != nil {
		t.Errorf("got %+v, want the applications only", got)
	}
	if got := parts.Restricted(v1.OSUpgrade{}, some("x")); got.WorkerApplications == nil || len(got.WorkerApplications) != 0 {
		t.Errorf("got %+v, want owned and empty applications", got)
	}
}
