package sim

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// rebootByThemselves has hosts ask for a lock, and give it back after a while. Some never do: they
// died. In the quiet phase all are unlocked.
func (w *World) rebootByThemselves() {
	often := one(w.rng, "locks", 20*time.Second, time.Minute, 5*time.Minute)
	for !w.quiet.Load() {
		if sleep(w.ctx, w.rng.span("nobody locks for", often/4, often)) != nil {
			return
		}
		host := w.inOrder[w.rng.n("who locks", len(w.inOrder))].name
		if w.lock(host) && w.rng.chance("host dies locked", 0.3) {
			w.count("hosts that die locked")
			continue
		}
		if sleep(w.ctx, w.rng.span("host is locked for", time.Second, 3*time.Minute)) != nil {
			return
		}
		w.unlock(host)
	}
	for _, m := range w.inOrder {
		for !w.unlock(m.name) {
			if sleep(w.ctx, poll) != nil {
				return
			}
		}
	}
}

// lock has a host ask for a lock, and reports whether it has one.
func (w *World) lock(host string) (locked bool) {
	err := w.byFleetLock("where locks", func(ctx context.Context, c *controller.Controller) error {
		_, err := c.Lock(ctx, "zincati", ofHost(host))
		return err
	})
	w.answered("lock", host, err)
	return err == nil
}

// unlock has a host say that it has rebooted, and reports whether the site knows that. A host that is
// not known any more was deleted, and is not locked.
func (w *World) unlock(host string) bool {
	err := w.byFleetLock("where unlocks", func(ctx context.Context, c *controller.Controller) error {
		_, err := c.Unlock(ctx, "zincati", ofHost(host))
		return err
	})
	w.answered("unlock", host, err)
	return err == nil || isLockError(err)
}

// byFleetLock sends a request to one of the sites.
func (w *World) byFleetLock(purpose string, ask func(context.Context, *controller.Controller) error) error {
	c := w.sites[w.rng.n(purpose, len(w.sites))].controller()
	if c == nil {
		return run.ErrNotReady
	}
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	return ask(ctx, c)
}

func ofHost(host string) v1.FleetLock {
	return v1.FleetLock{ClientParams: v1.FleetLockClient{ID: host, Group: v1.FleetLockGroup}}
}

func isLockError(err error) bool {
	_, is := errors.AsType[*run.LockError](err)
	return is
}
