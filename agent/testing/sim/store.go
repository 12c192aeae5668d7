package sim

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func (w *World) setConfig(c *v1.OSUpgrade) {
	ctx := context.Background()
	_, base, _ := w.store.Config(ctx, tenant)
	_, err := w.store.PutConfig(ctx, tenant, v1.Kept[v1.OSUpgrade]{Value: *c}, base)
	w.must(err)
}

// setRollout writes the rollout; nil deletes it.
func (w *World) setRollout(r *v1.Rollout) {
	ctx := context.Background()
	_, base, err := w.store.Rollout(ctx, tenant)
	switch {
	case r != nil:
		_, err = w.store.PutRollout(ctx, tenant, v1.Kept[v1.Rollout]{Value: *r}, base)
	case err == nil:
		_, err = w.store.DeleteRollout(ctx, tenant, base)
	}
	w.declared(err)
}

// setCalendar writes a calendar; nil deletes it.
func (w *World) setCalendar(name string, c *v1.Calendar) {
	ctx := context.Background()
	_, base, err := w.store.Calendar(ctx, tenant, name)
	switch {
	case c != nil:
		_, err = w.store.PutCalendar(ctx, tenant, name, v1.Kept[v1.Calendar]{Value: *c}, base)
	case err == nil:
		_, err = w.store.DeleteCalendar(ctx, tenant, name, base)
	}
	w.declared(err)
}

// setBudget writes a disruption budget; nil deletes it.
func (w *World) setBudget(name string, b *v1.Budget) {
	ctx := context.Background()
	_, base, err := w.store.Budget(ctx, tenant, name)
	switch {
	case b != nil:
		_, err = w.store.PutBudget(ctx, tenant, name, v1.Kept[v1.Budget]{Value: *b}, base)
	case err == nil:
		_, err = w.store.DeleteBudget(ctx, tenant, name, base)
	}
	w.declared(err)
}

// declared takes the error of a declaration; the deletion of what is not there is none.
func (w *World) declared(err error) {
	if !errors.Is(err, store.ErrNotFound) {
		w.must(err)
	}
}

// siteStore is the store as one controller sees it. What is stored survives every fault.
type siteStore struct {
	*memory.Store
	w *World
	p *process
}

var errStore = errors.New("sim: the store does not answer")

// write takes no simulated time: a controller holds a mutex during some writes, and
// the time of a synctest bubble does not pass while a goroutine waits for a mutex.
func (s siteStore) write() error {
	switch {
	case s.p.dead():
		return errDead
	case s.w.fault("store: write fails", s.p.name):
		return errStore
	}
	return nil
}

func (s siteStore) read(ctx context.Context) error {
	switch {
	case s.p.dead():
		return errDead
	case s.w.fault("store: read fails", s.p.name):
		return errStore
	}
	return sleep(ctx, s.w.rng.span("store read/"+s.p.name, 100*time.Microsecond, 5*time.Millisecond))
}

// delayed waits before a watch tells of something, or breaks the watch.
func (s siteStore) delayed(ctx context.Context) error {
	switch {
	case s.w.fault("store: watch breaks", s.p.name):
		return errStore
	case s.w.fault("store: watch stale", s.p.name):
		return log.ErrStale
	}
	return sleep(ctx, s.w.rng.span("store watch/"+s.p.name, 100*time.Microsecond, 50*time.Millisecond))
}

// WatchIntent implements controller.Store.
func (s siteStore) WatchIntent(ctx context.Context, tenant string, see func(store.Seen)) error {
	// A watch that begins again gives what is there, and does not tell what is gone.
	s.p.given(oracle.Frozen{})
	s.p.skips.forget()
	s.p.withdrawn.forget()
	given := func(seen store.Seen) {
		see(seen)
		if seen.Name == stop {
			s.p.given(s.w.frozen(seen.Calendar))
		}
		if seen.Kind == store.Skip {
			s.p.skips.give(onLog(seen.Name), openings(seen.Name, seen.Skips))
		}
		if seen.Kind == store.Release {
			s.p.withdrawn.give(seen.Name, seen.Release)
		}
	}
	return watching(ctx, s, given, func(ctx context.Context, see func(store.Seen)) error {
		return s.Store.WatchIntent(ctx, tenant, see)
	})
}

// WatchReports implements controller.Store.
func (s siteStore) WatchReports(ctx context.Context, tenant string, kind *report.Kind, see func(store.Reported)) error {
	return watching(ctx, s, see, func(ctx context.Context, see func(store.Reported)) error {
		return s.Store.WatchReports(ctx, tenant, kind, see)
	})
}

// watching delays and breaks a watch.
func watching[T any](ctx context.Context, s siteStore, see func(T), watch func(context.Context, func(T)) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	_ = watch(ctx, func(seen T) {
		if err := s.delayed(ctx); err != nil {
			stop(err)
		}
		if ctx.Err() == nil {
			see(seen)
		}
	})
	return context.Cause(ctx)
}

// Report implements controller.Store and gate.Keeper.
func (s siteStore) Report(ctx context.Context, tenant, key string, id report.ID) (report.Kept, error) {
	if err := s.read(ctx); err != nil {
		return report.Kept{}, err
	}
	return s.Store.Report(ctx, tenant, key, id)
}

// ReportsNumber implements controller.Store.
func (s siteStore) ReportsNumber(ctx context.Context, tenant string, kind *report.Kind) (uint64, error) {
	if err := s.read(ctx); err != nil {
		return 0, err
	}
	return s.Store.ReportsNumber(ctx, tenant, kind)
}

// Hosts implements controller.Store.
func (s siteStore) Hosts(ctx context.Context, tenant string) ([]store.Host, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	return s.Store.Hosts(ctx, tenant)
}

// PutHost implements controller.Store.
func (s siteStore) PutHost(ctx context.Context, key string, h store.Host) error {
	if err := s.write(); err != nil {
		return err
	}
	return s.Store.PutHost(ctx, key, h)
}

// PutLastRuns implements controller.Store.
func (s siteStore) PutLastRuns(ctx context.Context, tenant string, runs []store.LastRun) error {
	if err := s.write(); err != nil {
		return err
	}
	return s.Store.PutLastRuns(ctx, tenant, runs)
}

// DeleteHost implements controller.Store.
func (s siteStore) DeleteHost(ctx context.Context, tenant, key string) error {
	if err := s.write(); err != nil {
		return err
	}
	return s.Store.DeleteHost(ctx, tenant, key)
}

// PutRun implements controller.Store.
func (s siteStore) PutRun(ctx context.Context, tenant string, r v1.Run, asOf uint64) error {
	if err := s.write(); err != nil {
		return err
	}
	if _, err := s.Store.Run(ctx, tenant, r.ID); errors.Is(err, store.ErrNotFound) {
		s.w.count("runs kept in the history")
	} else {
		s.w.count("runs kept again in the history")
	}
	return s.Store.PutRun(ctx, tenant, r, asOf)
}

// Run implements controller.Store.
func (s siteStore) Run(ctx context.Context, tenant string, id uint64) (v1.Run, error) {
	if err := s.read(ctx); err != nil {
		return v1.Run{}, err
	}
	return s.Store.Run(ctx, tenant, id)
}

// Runs implements controller.Store.
func (s siteStore) Runs(ctx context.Context, tenant string, deliver func(v1.Run) (more bool)) error {
	if err := s.read(ctx); err != nil {
		return err
	}
	return s.Store.Runs(ctx, tenant, deliver)
}
