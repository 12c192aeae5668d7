package strategy

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestToUndo checks what a rollback undoes, by what a host has of one change: what the
// upgrade changed, and nothing that somebody else has installed or removed.
func TestToUndo(t *testing.T) {
	t.Parallel()
	upgrade := message.Change{Name: "a", From: "1", To: "2"}
	install := message.Change{Name: "a", To: "2"}
	remove := message.Change{Name: "a", From: "1"}
	for name, c := range map[string]struct {
		planned message.Change
		has     string
		// broken is set if the package manager has not finished with what the host has.
		broken bool
		back   bool
		others string
	}{
		"upgraded":                        {planned: upgrade, has: "2", back: true},
		"as before":                       {planned: upgrade, has: "1"},
		"cut off in the version before":   {planned: upgrade, has: "1", broken: true, back: true},
		"upgraded further by another":     {planned: upgrade, has: "3", others: "a is 3 (planned: 2)"},
		"removed by another":              {planned: upgrade, has: "", others: "a is gone (planned: 2)"},
		"installed":                       {planned: install, has: "2", back: true},
		"not installed":                   {planned: install, has: ""},
		"another version installed":       {planned: install, has: "3", others: "a is 3 (planned: 2)"},
		"removed":                         {planned: remove, has: "", back: true},
		"not removed":                     {planned: remove, has: "1"},
		"upgraded instead of removed":     {planned: remove, has: "3", others: "a is 3 (planned: removal)"},
		"cut off while it was removed":    {planned: remove, has: "1", broken: true, back: true},
		"cut off while it was installed":  {planned: install, has: "2", broken: true, back: true},
		"cut off before it had a version": {planned: install, has: "", broken: true, back: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := []message.Change{c.planned}
			reversed := Reversed(plan)
			var differs, missing []message.Change
			if c.has != c.planned.From || c.broken {
				differs = []message.Change{{Name: "a", From: c.has, To: reversed[0].To}}
			}
			if c.has != c.planned.To || c.broken {
				missing = []message.Change{{Name: "a", From: c.has, To: c.planned.To}}
			}
			var want Undo
			if c.back {
				want.Back = reversed
			}
			if c.others != "" {
				want.Left = []message.Change{{Name: "a", From: c.has, To: c.planned.To}}
				c.others += "; somebody else changed that after the host was prepared, so it stays"
			}
			got := ToUndo(plan, differs)
			if !reflect.DeepEqual(got, want) || got.Others() != c.others {
				t.Errorf("it undoes %+v, and says %q", got, got.Others())
			}
			if got.Unchanged(plan, missing) != !c.back {
				t.Errorf("that the upgrade changed nothing is %t", got.Unchanged(plan, missing))
			}
		})
	}
	if (Undo{}).Unchanged([]message.Change{upgrade}, nil) {
		t.Error("what starts next is no change")
	}
}

// TestMend repairs what a run has left: it undoes what is broken, or else makes what that run
// had begun, without what somebody else has changed.
func TestMend(t *testing.T) {
	t.Parallel()
	left := []message.Change{{Name: "a", From: "1", To: "2"}, {Name: "b", From: "1", To: "2"}, {Name: "c", From: "1", To: "2"}}
	broken, has := left[:1], map[string]string{"a": "2", "b": "2", "c": "3"}
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		undo, do error
		done     []message.Change
		says     string
	}{
		"it goes back":            {},
		"it cannot go back":       {undo: refused, done: left[:2]},
		"it can do neither":       {undo: errors.New("no way back"), do: refused, done: left[:2], says: "cannot repair what an earlier run has left: refused"},
		"it is stopped meanwhile": {undo: context.Canceled, says: "cannot repair what an earlier run has left: context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var undone, done []message.Change
			err := Mend(ctx, left, broken, Mending{
				Progress: func(int, string) {},
				Missing: func(_ context.Context, job Job) ([]message.Change, error) {
					return Lacks(job.Plan, has), nil
				},
				Undo: func(_ context.Context, changes []message.Change) error {
					if undone = changes; errors.Is(c.undo, context.Canceled) {
						cancel()
					}
					return c.undo
				},
				Do: func(_ context.Context, changes []message.Change) error { done = changes; return c.do },
			})
			if (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
				t.Errorf("it ends with %v, want %q", err, c.says)
			}
			if !slices.Equal(undone, broken) || !slices.Equal(done, c.done) {
				t.Errorf("it undid %v and did %v, want %v and %v", undone, done, broken, c.done)
			}
		})
	}
}
