package v1

import (
	"context"
	"iter"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// WindowsUntil is Windows, but ends with the error of ctx as soon as that ends:
// a year of many calendars takes its time, and whoever asked may be gone.
func WindowsUntil(ctx context.Context, plan window.Schedule, from, to time.Time, count int) ([]Window, error) {
	plan.Allow, plan.Freezes = until(ctx, plan.Allow), until(ctx, plan.Freezes)
	windows := []Window{}
	for o := range plan.Ahead(from, to, count) {
		if ctx.Err() != nil {
			break
		}
		windows = append(windows, windowOf(o))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return windows, nil
}

// until returns calendars in which nothing happens any more once ctx has ended:
// a plan whose windows are all frozen looks ahead for years without finding
// one.
func until(ctx context.Context, calendars []window.Calendar) []window.Calendar {
	all := make([]window.Calendar, len(calendars))
	for i, c := range calendars {
		all[i] = ending{Calendar: c, ctx: ctx}
	}
	return all
}

// ending is a calendar until ctx ends.
type ending struct {
	window.Calendar
	ctx context.Context
}

// Occurrences implements window.Calendar.
func (e ending) Occurrences(site *time.Location, from, to time.Time) iter.Seq[window.Occurrence] {
	return func(yield func(window.Occurrence) bool) {
		if e.ctx.Err() != nil {
			return
		}
		for o := range e.Calendar.Occurrences(site, from, to) {
			if e.ctx.Err() != nil || !yield(o) {
				return
			}
		}
	}
}
