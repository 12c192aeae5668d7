package strategy

import (
	"context"
	"fmt"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Undo is what keeps a host from being what it was before an upgrade.
type Undo struct {
	// Back are the changes that undo the upgrade.
	Back []message.Change
	// Left are the packages in a version that is neither the one of before nor the
	// planned one: somebody else has changed them since the host was prepared, so they
	// stay. From is what the host has, and To is the planned version.
	Left []message.Change
}

// Reversed returns the changes that undo others.
func Reversed(changes []message.Change) []message.Change {
	back := make([]message.Change, 0, len(changes))
	for _, c := range changes {
		back = append(back, message.Change{Name: c.Name, From: c.To, To: c.From})
	}
	return back
}

// ToUndo compares a host with a plan. differs are the reversed changes of the plan that the
// host does not have, as Missing returns them. A package that is in no state of the plan
// was not changed by it: to install its version of before would take away what somebody
// else has installed.
func ToUndo(plan, differs []message.Change) (u Undo) {
	for _, c := range plan {
		at := slices.IndexFunc(differs, func(d message.Change) bool { return d.Name == c.Name && d.To == c.From })
		switch {
		case at < 0:
		case differs[at].From == c.To || differs[at].From == c.From:
			u.Back = append(u.Back, message.Change{Name: c.Name, From: c.To, To: c.From})
		default:
			u.Left = append(u.Left, message.Change{Name: c.Name, From: differs[at].From, To: c.To})
		}
	}
	return u
}

// UndoOf compares a host with a plan: missing returns those of some changes that the host does not have.
func UndoOf(plan []message.Change, missing func([]message.Change) []message.Change) Undo {
	return ToUndo(plan, missing(Reversed(plan)))
}

// Past returns the job of going to the release that the host had before; false if that is unknown, or is not
// of packages as of some time.
func (j Job) Past() (past Job, some bool) {
	if j.Was == nil || j.Was.Packages == nil || j.Was.Packages.AsOf.IsZero() {
		return j, false
	}
	j.Release, j.ReleaseName = j.Was, "of before"
	return j, true
}

// PrepareBy prepares what, an upgrade or a rollback, by a call that a strategy begins.
func PrepareBy[C any](ctx context.Context, job Job, what string, begin func() (C, error), prepare func(C, context.Context, Job) (message.ChangeSet, error)) (message.ChangeSet, error) {
	call, err := begin()
	var plan message.ChangeSet
	if err == nil {
		plan, err = prepare(call, ctx, job)
	}
	if err != nil {
		return message.ChangeSet{}, fmt.Errorf("cannot prepare the %s: %w", what, err)
	}
	return plan, nil
}

// Own returns the changes of the plan without the packages that somebody else has changed.
func (u Undo) Own(plan []message.Change) []message.Change {
	return slices.DeleteFunc(slices.Clone(plan), func(c message.Change) bool {
		return slices.ContainsFunc(u.Left, func(left message.Change) bool { return left.Name == c.Name })
	})
}

// Plan returns the plan that undoes an upgrade of an earlier run, and tells what somebody else has
// changed since.
func (u Undo) Plan(progress func(percent int, text string)) message.ChangeSet {
	if others := u.Others(); others != "" {
		progress(-1, message.CleanText(others))
	}
	return message.ChangeSet{Changes: u.Back}.Sorted()
}

// Unchanged reports whether an upgrade has changed nothing: missing are the changes of the
// plan that the host lacks, and nothing is to be undone.
func (u Undo) Unchanged(plan, missing []message.Change) bool {
	return len(u.Back) == 0 && !slices.ContainsFunc(plan, func(c message.Change) bool {
		return !slices.ContainsFunc(missing, func(m message.Change) bool { return m.Name == c.Name && m.To == c.To })
	})
}

// Mending is what Mend needs of a strategy.
type Mending struct {
	Progress func(percent int, message string)
	// Missing is that of the Strategy.
	Missing func(ctx context.Context, job Job) ([]message.Change, error)
	// Undo goes back from changes, and Do makes them, whatever was begun of them.
	Undo, Do func(ctx context.Context, changes []message.Change) error
}

// Mend repairs a host whose own run broke off: left are the changes of that run, and broken those
// of them whose packages are broken. It undoes these and no others, with which the host may have
// been in service since. Where that fails, it completes the run, without what somebody else
// has changed.
func Mend(ctx context.Context, left, broken []message.Change, m Mending) error {
	m.Progress(-1, "repairing what an earlier run has left")
	err := m.Undo(ctx, broken)
	if err != nil && ctx.Err() == nil {
		m.Progress(-1, message.CleanText("repair failed: "+err.Error()))
		err = m.complete(ctx, left)
	}
	if err != nil {
		return fmt.Errorf("cannot repair what an earlier run has left: %w", err)
	}
	return nil
}

func (m Mending) complete(ctx context.Context, left []message.Change) error {
	differs, err := m.Missing(ctx, Job{Plan: message.ChangeSet{Changes: Reversed(left)}})
	if err != nil {
		return err
	}
	return m.Do(ctx, ToUndo(left, differs).Own(left))
}

// Others says which packages somebody else has changed; empty if nobody has.
func (u Undo) Others() string {
	if len(u.Left) == 0 {
		return ""
	}
	const named = 5
	var names []string
	for _, c := range u.Left[:min(len(u.Left), named)] {
		names = append(names, departed(c))
	}
	return fmt.Sprintf("%s; somebody else changed that after the host was prepared, so it stays", text.ListOf(names, len(u.Left), named))
}

// departed says what a package is instead of what was planned.
func departed(c message.Change) string {
	planned := "planned: " + c.To
	if c.To == "" {
		planned = "planned: removal"
	}
	if c.From == "" {
		return fmt.Sprintf("%s is gone (%s)", c.Name, planned)
	}
	return fmt.Sprintf("%s is %s (%s)", c.Name, c.From, planned)
}
