package controller

import (
	"context"
	"fmt"

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
	switch _, known := s.hosts[name]; {
	case !known && !s.awaits(name):
		return fmt.Errorf("host %s: %w", name, run.ErrNoHost)
	case s.isOnline(name):
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
	s.forgotten[name] = true
	delete(s.versions, name)
	s.present.forget(name)
	s.suspect(name)
	s.changed()
	return nil
}

// awaits reports whether it matters to the newest run what becomes of a host.
func (s *state) awaits(name string) bool {
	newest := s.ledger.Newest()
	return newest != nil && !s.forgotten[name] && newest.Minds(name)
}

// lost returns the event that frees the slots of hosts that were deleted after
// the end of their run; false when there are none.
func (s *state) lost(ended *run.State) (message.Event, bool) {
	e := message.Event{Event: message.Recovered, Reason: message.Deleted}
	for name := range s.forgotten {
		if ended.HoldsSlot(name) {
			e.Hosts = append(e.Hosts, name)
		}
	}
	return sortedHosts(e), len(e.Hosts) > 0
}

// isOnline reports whether a host is online now.
func (s *state) isOnline(name string) bool {
	s.listen(s.Now())
	return s.present.online(name)
}
