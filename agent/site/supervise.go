package site

import (
	"context"
	"errors"
)

// Alive returns why the loop of a controller does not answer before ctx ends.
func (s *Site) Alive(ctx context.Context) error {
	for _, c := range s.tenants.controllers() {
		if err := c.Alive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// errBusy means that a run is under way.
var errBusy = errors.New("a run is in progress")

// Idle returns nil if no run is under way: a site that is started anew then interrupts
// nobody's wait. A run survives a restart, too.
func (s *Site) Idle(ctx context.Context) error {
	for _, c := range s.tenants.controllers() {
		if id, err := c.Current(ctx); err != nil {
			return err
		} else if id != 0 {
			return errBusy
		}
	}
	return nil
}
