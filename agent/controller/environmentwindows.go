package controller

import (
	"context"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// shownSchedule is the schedule of an environment with the skipped windows of that environment.
type shownSchedule struct {
	// environment is empty for the windows of the tenant.
	environment string
	schedule    window.Schedule
	skips       *v1.Skips
}

// shownSchedule returns the schedule of an environment: its own, or that of the tenant.
func (s *state) shownSchedule(name string) shownSchedule {
	if d := s.intent.environments[name]; d != nil && d.HasSchedule() {
		return shownSchedule{name, d.schedule, s.intent.skips[name]}
	}
	return shownSchedule{schedule: s.intent.schedule, skips: s.intent.skips[name]}
}

// WindowsOf is Windows of an environment. The error is *run.NoEnvironment if it does not exist.
func (c *Controller) WindowsOf(ctx context.Context, environment string, from, to time.Time, count int) ([]v1.Window, error) {
	shown, err := until(ctx, c, func(s *state) (shownSchedule, error) {
		env, err := s.existing(environment)
		if err != nil {
			return shownSchedule{}, err
		}
		return s.shownSchedule(env.name), nil
	})
	if err != nil {
		return nil, err
	}
	return shown.windows(ctx, from, to, count)
}

// allSchedules are the schedules that differ.
type allSchedules struct {
	tenants shownSchedule
	own     []shownSchedule
	// skips are the skipped windows of the environments that share the windows of the tenant.
	skips []environmentSkips
}

// environmentSkips are the skipped windows of an environment.
type environmentSkips struct {
	environment string
	skips       *v1.Skips
}

// AllWindows is Windows together with those of each environment that has windows of its own. A window
// of the tenant that an environment skips is listed once more for that environment, since the others
// have it.
func (c *Controller) AllWindows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error) {
	all, err := ask(ctx, c, (*state).allSchedules)
	if err != nil {
		return nil, err
	}
	windows, err := all.tenants.windows(ctx, from, to, count)
	if err != nil {
		return nil, err
	}
	windows = earliest(append(windows, skippedOf(windows, all.skips)...), count)
	for _, own := range all.own {
		to = lastNeeded(windows, from, to, count)
		more, err := own.windows(ctx, from, to, count)
		if err != nil {
			return nil, err
		}
		if len(more) > 0 {
			windows = earliest(append(windows, more...), count)
		}
	}
	return windows, nil
}

// earliest sorts windows and returns the first of them; 0 for all.
func earliest(windows []v1.Window, count int) []v1.Window {
	slices.SortStableFunc(windows, func(a, b v1.Window) int { return a.Start.Compare(b.Start) })
	if count > 0 {
		windows = windows[:min(len(windows), count)]
	}
	return windows
}

func (s *state) allSchedules() allSchedules {
	all := allSchedules{tenants: s.shownSchedule(defaultName)}
	if s.alone() {
		return all
	}
	all.tenants.skips = nil
	for _, env := range s.inOrder {
		switch shown := s.shownSchedule(env.name); {
		case shown.environment != "":
			all.own = append(all.own, shown)
		case shown.skips != nil:
			all.skips = append(all.skips, environmentSkips{nameOf(env.name), shown.skips})
		}
	}
	return all
}

// skippedOf returns the windows of the tenant that environments skip.
func skippedOf(tenants []v1.Window, of []environmentSkips) (skipped []v1.Window) {
	for _, e := range of {
		for _, w := range tenants {
			if w.Skipped = e.skips.Of(w.Start); w.Skipped != nil {
				w.Environment = e.environment
				skipped = append(skipped, w)
			}
		}
	}
	return skipped
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

// windows are the openings of the schedule that overlap the time between two instants. A schedule does
// not change, and to look far ahead takes its time: call it outside of the loop.
func (o shownSchedule) windows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error) {
	windows, err := v1.WindowsUntil(ctx, o.schedule, from, to, count)
	for i := range windows {
		windows[i].Environment, windows[i].Skipped = o.environment, o.skips.Of(windows[i].Start)
	}
	return windows, err
}
