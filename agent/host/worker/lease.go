package worker

import (
	"context"
	"errors"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
)

// errMoved means that a call to the site was cancelled because the state of the
// lease has changed.
var errMoved = errors.New("the lease has changed")

// leaseTerm is a time in which the state of the lease does not change.
type leaseTerm struct {
	state decide.Lease
	// epoch is the epoch of the lease while this worker holds it.
	epoch uint64
	// ctx ends with the term.
	ctx context.Context
	end context.CancelFunc
}

// lease is the state of the lease. The loop and the jobs beside it share it.
type lease struct {
	mu   sync.Mutex
	run  context.Context
	term leaseTerm
}

func newLease(run context.Context) *lease {
	s := &lease{run: run}
	s.term.ctx, s.term.end = context.WithCancel(run)
	return s
}

func (s *lease) now() leaseTerm {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.term
}

// change begins a new term if the current state is in from, or if this worker holds
// the lease in another epoch: then another worker held the lease in between, and
// this worker did not notice.
func (s *lease) change(to decide.Lease, epoch uint64, from ...decide.Lease) (now leaseTerm, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = to == decide.Held && s.term.state == decide.Held && s.term.epoch != epoch
	for _, f := range from {
		changed = changed || s.term.state == f
	}
	if changed {
		s.term.end()
		s.term = leaseTerm{state: to, epoch: epoch}
		s.term.ctx, s.term.end = context.WithCancel(s.run)
	}
	return s.term, changed
}
