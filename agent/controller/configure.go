package controller

import (
	"context"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
)

// awaiting is somebody who waits until a revision of the configuration counts.
type awaiting struct {
	number uint64
	seen   chan struct{}
}

// configure takes in the tenant's configuration. One that cannot be read
// closes all windows: what it meant to forbid is unknown.
func (s *state) configure(seen store.Seen) {
	s.config, s.windows, s.revision = nil, nil, seen.Number
	err := seen.Err
	if err == nil && seen.Config != nil {
		s.config = seen.Config
		s.windows, err = s.config.Windows()
	}
	if err != nil {
		s.Logger.Error("the configuration cannot be used; no window is open", "tenant", s.Tenant, "error", err)
	}
	s.configured = true
	s.learnt()
	s.release()
	s.changed()
}

// release lets go on whoever waits for a revision that counts by now.
func (s *state) release() {
	waiting := s.awaited[:0]
	for _, a := range s.awaited {
		if a.number <= s.revision {
			close(a.seen)
			continue
		}
		waiting = append(waiting, a)
	}
	s.awaited = waiting
}

// Configured returns once the configuration's revision of a number, or a later
// one, counts, so that whoever wrote it finds it in what the controller says
// and does.
func (c *Controller) Configured(ctx context.Context, number uint64) error {
	a := awaiting{number: number, seen: make(chan struct{})}
	err := c.attempt(ctx, func(s *state) error {
		s.awaited = append(s.awaited, a)
		s.release()
		return nil
	})
	if err == nil {
		_, err = await(ctx, c, a.seen)
	}
	if err != nil {
		_ = c.post(context.WithoutCancel(ctx), func(s *state) { s.leave(a) })
	}
	return err
}

// leave drops somebody who waits no more.
func (s *state) leave(gone awaiting) {
	s.awaited = slices.DeleteFunc(s.awaited, func(a awaiting) bool { return a.seen == gone.seen })
}
