package worker

import (
	"context"
	"testing"
)

// TestSeatInAnotherTenure checks that a worker which asks for the seat that it
// believes to have, and gets it in another tenure, begins anew: somebody else
// had it meanwhile. In the same tenure nothing changes.
func TestSeatInAnotherTenure(t *testing.T) {
	t.Parallel()
	s := seat{run: t.Context()}
	s.is.standing = asking
	s.is.ctx, s.is.end = context.WithCancel(t.Context())
	first, changed := s.change(held, 1, asking)
	if !changed || first.tenure != 1 {
		t.Fatalf("the first seat is %+v, changed: %t", first, changed)
	}
	if _, changed := s.change(held, 1, asking); changed || first.ctx.Err() != nil {
		t.Errorf("the same tenure changes something: %t, %v", changed, first.ctx.Err())
	}
	if now, changed := s.change(held, 3, asking); !changed || now.tenure != 3 || first.ctx.Err() == nil {
		t.Errorf("another tenure changes: %t; the seat is %+v, what was done in the first one ends with %v", changed, now, first.ctx.Err())
	}
}
