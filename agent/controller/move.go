package controller

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Move assigns a host to an environment, given by its name for people, whatever matches the host. An
// empty name undoes that: the matches decide again. The assignment is on disk when Move returns. A
// member of a run under way moves when that run has ended. The error is run.ErrNoHost,
// *run.NoEnvironment or run.ErrNotReady; after an error Move can be repeated.
func (c *Controller) Move(ctx context.Context, host, environment string) (v1.HostEnvironment, error) {
	if err := c.attempt(ctx, func(s *state) error { return s.move(host, environment) }); err != nil {
		return v1.HostEnvironment{}, err
	}
	if err := c.session().beside.writer.keep(ctx, host); err != nil {
		return v1.HostEnvironment{}, err
	}
	return until(ctx, c, func(s *state) (v1.HostEnvironment, error) { return s.moved(host) })
}

// move assigns a host to an environment.
func (s *state) move(name, environment string) error {
	if !s.active {
		return s.mayWrite()
	}
	if !s.intent.complete {
		return errPending
	}
	known := s.hosts.known[name]
	if known == nil {
		return fmt.Errorf("host %s: %w", name, run.ErrNoHost)
	}
	if environment != "" {
		if _, err := s.declared(environment); err != nil {
			return err
		}
	}
	known.Assigned = environment
	s.hosts.place(known, s.intent.sorting())
	s.writer.put(known.Host)
	s.changed()
	return nil
}

// moved tells where a host is.
func (s *state) moved(name string) (v1.HostEnvironment, error) {
	known := s.hosts.known[name]
	if known == nil {
		return v1.HostEnvironment{}, fmt.Errorf("host %s: %w", name, run.ErrNoHost)
	}
	at := v1.HostEnvironment{Hostname: name, Environment: nameOf(known.Environment), Assigned: known.Assigned != ""}
	if at.Unplaced = known.Unplaced; known.Unplaced {
		at.Environment = ""
	}
	if s.isElsewhere(s.environment(known.Environment), name) {
		last := s.lastOf(name)
		at.Run, at.RunEnvironment = last.ledger.Current().Key(), nameOf(last.name)
	}
	return at, nil
}

// unassign undoes the move of a host to an environment that was deleted since. An environment that
// cannot be read keeps its hosts: somebody may repair it.
func (s *state) unassign(known *host) (changed bool) {
	name := known.Assigned
	if name == "" || s.isDeclared(onLog(name)) || s.intent.unusable[store.Object{Kind: store.Environment, Name: name}] != nil {
		return false
	}
	known.Assigned = ""
	return true
}
