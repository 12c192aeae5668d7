package store_test

import (
	"errors"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
)

// TestSeatIsGivenOnce checks that of two who saw a seat free, or with the same
// holder, only one is given it.
func TestSeatIsGivenOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	var base uint64
	for _, holder := range []string{"one", "two"} {
		number, err := s.PutSeat(t.Context(), "acme", "h01", []byte(`{"worker":"`+holder+`"}`), base)
		if err != nil || number <= base {
			t.Fatalf("the seat goes to %s with number %d, %v", holder, number, err)
		}
		if _, err := s.PutSeat(t.Context(), "acme", "h01", []byte(`{"worker":"late"}`), base); !errors.Is(err, store.ErrConflict) {
			t.Errorf("the seat is given again after number %d: %v", base, err)
		}
		base = number
	}
}
