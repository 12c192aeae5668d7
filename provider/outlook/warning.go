package outlook

import (
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// warnings puts what is worth a warning into words.
type warnings struct {
	at path.Path
	// what it is that comes next, such as "window".
	what  string
	now   time.Time
	diags *diag.Diagnostics
}

// none warns when nothing lies ahead, and reports whether.
func (w warnings) none(plan window.Schedule) bool {
	plan.Freezes = nil
	if _, ok := plan.Next(w.now); ok {
		return false
	}
	w.diags.AddAttributeWarning(w.at, "No "+w.what+" lies ahead",
		"From "+utc(w.now)+" on, for the next ten years, there is no "+w.what+".")
	return true
}

// frozen warns when all of the next window, or what is left of it, is frozen,
// and reports whether.
func (w warnings) frozen(plan window.Schedule) bool {
	if !isFrozen(plan, w.now) {
		return false
	}
	unfrozen := plan
	unfrozen.Freezes = nil
	closed, _ := unfrozen.Next(w.now)
	detail := fmt.Sprintf("From %s to %s", utc(closed.Start), utc(closed.End))
	if by, until, ok := plan.Frozen(latest(w.now, closed.Start)); ok {
		detail += fmt.Sprintf(" no run may be under way: calendar %s", by.Origin.Calendar)
		if by.Origin.Summary != "" {
			detail += fmt.Sprintf(" (%s)", by.Origin.Summary)
		}
		detail += fmt.Sprintf(" freezes it, until %s.", utc(until))
	}
	if open, ok := plan.Next(w.now); ok {
		detail += fmt.Sprintf(" The next one that is open begins at %s and lasts %s.", utc(open.Start), window.FormatDuration(open.Length()))
	} else {
		detail += " None of the next ten years is open."
	}
	w.diags.AddAttributeWarning(w.at, "The next "+w.what+" is frozen", detail)
	return true
}

// isFrozen reports whether nothing is left of the next window.
func isFrozen(plan window.Schedule, now time.Time) bool {
	unfrozen := plan
	unfrozen.Freezes = nil
	closed, ok := unfrozen.Next(now)
	if !ok {
		return false
	}
	open, ok := plan.Next(now)
	return !ok || !open.Start.Before(closed.End)
}

// moved warns when a change of the clock falls into the next window.
func (w warnings) moved(next window.Opening) {
	if next.StartMoved() {
		w.diags.AddAttributeWarning(w.at, "A change of the clock moves the start of the next "+w.what,
			"The clock skips the time at which it was to start, so it starts when the clock has been put forward, at "+utc(next.Start)+
				", and lasts "+window.FormatDuration(next.Length())+". A length is always elapsed time.")
	}
	if next.EndMoved() {
		w.diags.AddAttributeWarning(w.at, "A change of the clock moves the end of the next "+w.what,
			"It lasts "+window.FormatDuration(next.Length())+" of elapsed time, from "+utc(next.Start)+" to "+utc(next.End)+
				". The clock is changed in between, and so shows another time at its end than it does otherwise.")
	}
}

// short warns when the next window is shorter than any run so far took.
func (w warnings) short(next window.Opening, least time.Duration) {
	if next.Length() >= least {
		return
	}
	w.diags.AddAttributeWarning(w.at, "The next "+w.what+" is shorter than any run so far",
		fmt.Sprintf("It lasts %s, from %s to %s, and the shortest of the completed runs took %s. A run that is not done by the end of its window stays partial.",
			window.FormatDuration(next.Length()), utc(next.Start), utc(next.End), window.FormatDuration(least)))
}

func utc(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
