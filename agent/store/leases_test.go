package store_test

import (
	"errors"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
)

// TestLeaseIsGrantedOnce checks that of two gates which saw a lease with the same
// holder, or with none, only one grants it, and that what was written is read.
func TestLeaseIsGrantedOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	var base uint64
	for _, holder := range []string{"one", "two"} {
		if body, revision, err := s.Lease(t.Context(), "acme", "h01"); err != nil || revision != base || (body == nil) != (base == 0) {
			t.Fatalf("before %s the lease is %s in revision %d, %v", holder, body, revision, err)
		}
		lease := []byte(`{"worker":"` + holder + `"}`)
		revision, err := s.PutLease(t.Context(), "acme", "h01", lease, base)
		if err != nil || revision <= base {
			t.Fatalf("the lease goes to %s in revision %d, %v", holder, revision, err)
		}
		if _, err := s.PutLease(t.Context(), "acme", "h01", []byte(`{"worker":"late"}`), base); !errors.Is(err, store.ErrConflict) {
			t.Errorf("the lease is granted again after revision %d: %v", base, err)
		}
		if body, read, err := s.Lease(t.Context(), "acme", "h01"); err != nil || read != revision || string(body) != string(lease) {
			t.Errorf("the lease reads as %s in revision %d, %v", body, read, err)
		}
		base = revision
	}
	if err := s.DeleteHost(t.Context(), "acme", "h01"); err != nil {
		t.Fatal(err)
	}
	body, deleted, err := s.Lease(t.Context(), "acme", "h01")
	if err != nil || body != nil || deleted <= base {
		t.Fatalf("the lease of a deleted host is %s in revision %d, %v", body, deleted, err)
	}
	if _, err := s.PutLease(t.Context(), "acme", "h01", []byte(`{"worker":"new"}`), deleted); err != nil {
		t.Errorf("it cannot be granted anew: %v", err)
	}
}
