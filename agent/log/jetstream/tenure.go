package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
)

var _ log.Tenured = (*HostLog)(nil)

// Tenure implements log.Tenured.
func (s *HostLog) Tenure() uint64 {
	if mine := s.seat.Load(); mine != nil {
		return mine.tenure()
	}
	return 0
}

var errNotConnected = errors.New("the site is not connected")

// Leave implements log.Tenured.
func (s *HostLog) Leave(ctx context.Context) error {
	mine := s.seat.Load()
	switch {
	case mine == nil:
		return nil
	case s.taken() != nil:
		return s.taken()
	case !s.nats.IsConnected():
		return fmt.Errorf("cannot give the seat back: %w", errNotConnected)
	}
	verb := fmt.Sprintf("%s.%d", verbLeave, mine.Number)
	_, err := s.once(ctx, verb, s.message(verb, mine.Worker, nil))
	return err
}

// Left implements log.Tenured.
func (s *HostLog) Left() <-chan struct{} { return s.left }
