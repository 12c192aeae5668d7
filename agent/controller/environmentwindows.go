package controller

import (
	"context"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// ownSchedule is the schedule of an environment that has windows of its own.
type ownSchedule struct {
	environment string
	window.Schedule
}

// WindowsOf is Windows of an environment. The error is *run.NoEnvironment if it does not exist.
func (c *Controller) WindowsOf(ctx context.Context, environment string, from, to time.Time, count int) ([]v1.Window, error) {
	own, err := until(ctx, c, func(s *state) (*ownSchedule, error) {
		env, err := s.existing(environment)
		if err != nil {
			return nil, err
		}
		if d := s.intent.environments[env.name]; d != nil && d.HasSchedule() {
			return &ownSchedule{env.name, d.schedule}, nil
		}
		return nil, nil //nolint:nilnil // Its windows are those of the tenant.
	})
	switch {
	case err != nil:
		return nil, err
	case own == nil:
		return c.Windows(ctx, from, to, count)
	}
	return own.windows(ctx, from, to, count)
}

// AllWindows is Windows together with those of each environment that has windows of its own.
func (c *Controller) AllWindows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error) {
	schedules, err := ask(ctx, c, func(s *state) (all []ownSchedule) {
		for _, env := range s.inOrder {
			if d := s.intent.environments[env.name]; d != nil && d.HasSchedule() {
				all = append(all, ownSchedule{env.name, d.schedule})
			}
		}
		return all
	})
	if err != nil {
		return nil, err
	}
	windows, err := c.Windows(ctx, from, to, count)
	if err != nil {
		return nil, err
	}
	for _, own := range schedules {
		to = lastNeeded(windows, from, to, count)
		more, err := own.windows(ctx, from, to, count)
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			continue
		}
		windows = append(windows, more...)
		slices.SortStableFunc(windows, func(a, b v1.Window) int { return a.Start.Compare(b.Start) })
		if count > 0 {
			windows = windows[:min(len(windows), count)]
		}
	}
	return windows, nil
}

// lastNeeded returns until when further windows are of use beside those that were found, of which
// there are count at most: one that begins later than them all is left out anyway.
func lastNeeded(found []v1.Window, from, to time.Time, count int) time.Time {
	if count == 0 || len(found) < count {
		return to
	}
	// Not before from: one that is open then may have begun before those that were found.
	return times.Sooner(times.Later(found[count-1].Start, from.Add(1)), to)
}

// windows are the openings of the environment.
func (o ownSchedule) windows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error) {
	windows, err := v1.WindowsUntil(ctx, o.Schedule, from, to, count)
	for i := range windows {
		windows[i].Environment = o.environment
	}
	return windows, err
}
