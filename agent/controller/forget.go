package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// Forget deletes a host that is gone for good: no run waits for it any more.
// It is run.ErrNoHost when none of that name is known and *run.Refused while
// it is online. A host that comes back later is known again.
func (c *Controller) Forget(ctx context.Context, name string) error {
	if err := c.attempt(ctx, func(s *state) error { return s.forgettable(name) }); err != nil {
		return err
	}
	if err := c.keeper.forget(ctx, c.o.Tenant, name); err != nil {
		return err
	}
	// The store has forgotten it, so the rest must follow, whoever waits.
	return c.attempt(context.WithoutCancel(ctx), func(s *state) error { return s.forget(name) })
}

// forgettable tells why a host cannot be deleted.
func (s *state) forgettable(name string) error {
	switch h, known := s.hosts[name]; {
	case !known:
		return fmt.Errorf("host %s: %w", name, run.ErrNoHost)
	case h.online(s.Now()):
		return &run.Refused{Message: fmt.Sprintf(
			"host %s is online; stop its worker first, and wait until it was not heard of for %s", name, message.Silence)}
	}
	return nil
}

// forget drops a host that was deleted from the store. One that came back in
// the meantime is kept again.
func (s *state) forget(name string) error {
	if err := s.forgettable(name); err != nil {
		if h, known := s.hosts[name]; known {
			s.keeper.put(h.Host)
		}
		return err
	}
	delete(s.hosts, name)
	delete(s.versions, name)
	s.changed()
	return nil
}

// recovered returns the event that frees the slots of silent hosts which are
// online again or deleted; false when there are none.
func (s *state) recovered(silent []string, now time.Time) (message.Event, bool) {
	var heard, deleted []string
	for _, name := range silent {
		switch h, known := s.hosts[name]; {
		case !known:
			deleted = append(deleted, name)
		case h.online(now):
			heard = append(heard, name)
		}
	}
	e := message.Event{Event: message.Recovered, Hosts: heard, Reason: message.Heard}
	if len(heard) == 0 {
		e.Hosts, e.Reason = deleted, message.Deleted
	}
	return e, len(e.Hosts) > 0
}
