package sim

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// announce tells the oracle of the windows of an environment on the first day that have yet to close, and
// watches each that has yet to open until the windows of that environment are edited.
func (w *World) announce(environment string, windows []v1.MaintenanceWindow) {
	midnight := time.Now().UTC().Truncate(24 * time.Hour)
	edition := w.edition(environment)
	for _, window := range windows {
		at, err := time.Parse("15:04", window.StartTime)
		w.must(err)
		lasts, err := time.ParseDuration(window.Duration)
		w.must(err)
		start := midnight.Add(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute)
		now, end := time.Now(), start.Add(lasts)
		if !now.Before(end) {
			continue
		}
		w.mu.Lock()
		w.oracle.Window(oracle.Opening{Environment: environment, Start: start}, end, now)
		w.mu.Unlock()
		if start.Before(now) {
			continue
		}
		w.after(time.Until(start), func() {
			w.watchWindow(watched{environment: environment, edition: edition, end: end, well: map[*site]int{}})
		})
	}
}

// edition is how often the windows of an environment were edited.
func (w *World) edition(environment string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.editions[environment]
}

const (
	// lookEvery is the time from one look at an open window to the next one.
	lookEvery = 10 * time.Second
	// prompt is at how many looks in a row a site has to be well for it to have opened the run
	// of an open window.
	prompt = 7
)

// watched is an open window that is looked at until it closes: at how many looks in a row each site was
// well.
type watched struct {
	environment string
	edition     int
	end         time.Time
	well        map[*site]int
}

// watchWindow looks each while, until a window closes, whether a run of its environment is under way, asks
// the controllers why there is none, and notes how often in a row each site was well.
func (w *World) watchWindow(open watched) {
	if w.edition(open.environment) != open.edition {
		return
	}
	w.mu.Lock()
	if _, under := w.oracle.In(open.environment).UnderWay(); under {
		w.oracle.ReasonTold(open.environment, time.Now())
	}
	w.mu.Unlock()
	for _, s := range w.sites {
		why, isWell := s.idleReason(open.environment)
		if open.well[s]++; !isWell {
			open.well[s] = 0
		}
		w.mu.Lock()
		if why {
			w.oracle.ReasonTold(open.environment, time.Now())
		}
		if open.well[s] >= prompt {
			w.oracle.SiteWell(open.environment, time.Now())
		}
		w.mu.Unlock()
	}
	if left := time.Until(open.end); left > lookEvery {
		w.after(lookEvery, func() { w.watchWindow(open) })
	} else if left > time.Second {
		w.after(left-time.Second, func() { w.watchWindow(open) })
	}
}

// idleReason reports whether the controller of a site says why it opens no run of an environment, and
// whether the site is well: it knows of the environment, and nothing keeps it from opening one.
func (s *site) idleReason(environment string) (told, well bool) {
	c := s.controller()
	if c == nil {
		return false, false
	}
	status, err := c.EnvironmentStatus(s.w.ctx, cmp.Or(environment, v1.DefaultEnvironment))
	if err != nil {
		return false, false
	}
	needsNone := status.OpenWindow != nil && status.OpenWindow.UpToDate != ""
	return status.WaitingFor != nil || needsNone, s.isWell(c)
}

// isWell reports whether a controller is active and says that it is ready, nothing keeps it from the log,
// and it has been given all records: those that wait in a follower that stalls keep it from its next
// decision.
func (s *site) isWell(c *controller.Controller) bool {
	s.mu.Lock()
	passive := s.passive
	s.mu.Unlock()
	return !passive && c.Ready(s.w.ctx) == nil && s.link.up() && s.w.takesRecords() && s.knows() >= s.w.newest()
}

// skip skips the next window of an environment, as the API does.
func (w *World) skip(ctx context.Context, c *controller.Controller, environment string) error {
	opens, closes, err := c.Skippable(ctx, environment, time.Time{})
	if err != nil {
		return err
	}
	of := oracle.Opening{Environment: onLog(environment), Start: opens}
	w.editSkips(environment, func(all v1.Skips, now time.Time) (v1.Skips, bool) {
		next, changed := all.With(v1.SkippedWindow{Start: opens.UTC(), End: closes.UTC(), By: "operator", At: now, Reason: "because"}, now)
		if changed {
			w.oracle.Skip(of, now)
		}
		return next, changed
	})
	return nil
}

// unskip has the next window of an environment that is skipped open its run.
func (w *World) unskip(environment string) {
	w.editSkips(environment, func(all v1.Skips, now time.Time) (v1.Skips, bool) {
		next, taken := all.Without(time.Time{}, now)
		if taken != nil {
			w.oracle.Unskip(oracle.Opening{Environment: onLog(environment), Start: taken.Start}, now)
		}
		return next, taken != nil
	})
}

// editSkips edits the skipped windows of an environment; edit tells whether something has changed, and is
// called under the lock of the world.
func (w *World) editSkips(environment string, edit func(all v1.Skips, now time.Time) (v1.Skips, bool)) {
	ctx := context.Background()
	if environment == "" {
		environment = v1.DefaultEnvironment
	}
	all, base, err := w.store.Skips(ctx, tenant, environment)
	if !errors.Is(err, store.ErrNotFound) {
		w.must(err)
	}
	w.mu.Lock()
	next, changed := edit(all, time.Now())
	w.mu.Unlock()
	if !changed {
		return
	}
	w.note("the skipped windows of %s are %v", environment, next.Windows)
	_, err = w.store.PutSkips(ctx, tenant, environment, next, base)
	w.must(err)
}

// onLog is the name of an environment on the log.
func onLog(environment string) string {
	if environment == v1.DefaultEnvironment {
		return ""
	}
	return environment
}

// openings are the windows of an environment that are skipped.
func openings(environment string, skips *v1.Skips) (all []oracle.Opening) {
	if skips == nil {
		return nil
	}
	for _, s := range skips.Windows {
		all = append(all, oracle.Opening{Environment: onLog(environment), Start: s.Start.UTC()})
	}
	return all
}
