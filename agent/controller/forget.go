package controller

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Forget deletes a host that is gone for good: no run waits for it any more,
// and that is on disk when it returns. d is who asks, and why. The error is
// run.ErrNoHost when none of that name is known, *run.Refused while it is online
// and run.ErrNotReady when that is not known yet or the log did not take it:
// asked again, it goes on. A host that comes back later is known again.
func (c *Controller) Forget(ctx context.Context, name string, d run.Deletion) error {
	if err := c.attempt(ctx, func(s *state) error { return s.forgettable(name) }); err != nil {
		return err
	}
	if err := c.session().beside.writer.delete(ctx, c.o.Tenant, name); err != nil {
		return err
	}
	// The store has forgotten it, so the rest must follow, whoever waits.
	if err := c.attempt(context.WithoutCancel(ctx), func(s *state) error { return s.forget(name, d) }); err != nil {
		return err
	}
	return c.attempt(ctx, func(s *state) error { return s.forgot(name) })
}

// forgettable tells why a host cannot be deleted.
func (s *state) forgettable(name string) error {
	h, known := s.hosts.known[name]
	switch {
	case !s.active:
		return s.mayWrite()
	case !known && !s.minds(name):
		return fmt.Errorf("host %s: %w", name, run.ErrNoHost)
	case s.hosts.isOnline(name, s.Now()):
		return &run.Refused{Message: fmt.Sprintf(
			"host %s is online; stop its worker first, and wait until it was not heard of for %s", name, message.Silence)}
	case (!known || h.seen.IsZero()) && s.Now().Before(s.started.Add(gracePeriod)):
		return s.unheard(name)
	}
	return nil
}

// forget drops a host that was deleted from the store. One that came back in
// the meantime is kept again.
func (s *state) forget(name string, d run.Deletion) error {
	if err := s.forgettable(name); err != nil {
		if h, known := s.hosts.known[name]; known {
			s.writer.restore(h.Host)
		} else {
			s.writer.drop(name)
		}
		return err
	}
	s.writer.drop(name)
	s.hosts.delete(name, d)
	// A host of that name that comes back must not get the last run of this one.
	s.writer.lastRuns.Revise(func(_ string, queued *queuedRuns) { queued.gone = append(queued.gone, name) })
	s.changed()
	return nil
}

// minds reports whether it matters to the newest run of an environment what becomes of a host, or
// whether the host is locked.
func (s *state) minds(name string) bool {
	if _, locked := s.ledger.Locked(name); locked {
		return true
	}
	for _, env := range s.inOrder {
		if env.ledger.Minds(name) {
			return true
		}
	}
	return false
}

// forgot returns nil once a host that was deleted from the store matters to no
// run any more.
func (s *state) forgot(name string) error {
	switch _, back := s.hosts.known[name]; {
	case back:
		return &run.Refused{Message: fmt.Sprintf("host %s has come back while it was deleted", name)}
	case s.alarm != nil:
		return s.ready()
	case s.ledger.LastSeq < s.log.last || s.minds(name):
		return errPending
	}
	return nil
}
