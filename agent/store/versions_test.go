package store_test

import (
	"testing"
)

// TestVersionsNumber checks that the number of a tenant's last change moves
// with each of its changes, deletions included, and with no other tenant's.
func TestVersionsNumber(t *testing.T) {
	t.Parallel()
	s := open(t)
	number := func(tenant string) uint64 {
		t.Helper()
		n, err := s.VersionsNumber(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	put := func(tenant, key, body string) {
		t.Helper()
		if err := s.PutVersions(t.Context(), tenant, key, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if n := number("acme"); n != 0 {
		t.Errorf("before the first report the number is %d", n)
	}
	put("acme", "h01", `{"kernel":"1"}`)
	first := number("acme")
	put("acme", "h01", `{"kernel":"1"}`)
	put("other", "h01", `{"kernel":"1"}`)
	if n := number("acme"); n != first || first == 0 {
		t.Errorf("the number went from %d to %d though nothing changed", first, n)
	}
	put("acme", "h02", `{"kernel":"1"}`)
	second := number("acme")
	if second <= first {
		t.Errorf("the number went from %d to %d with a change", first, second)
	}
	if err := s.DeleteHost(t.Context(), "acme", "h01"); err != nil {
		t.Fatal(err)
	}
	if n := number("acme"); n <= second {
		t.Errorf("the number went from %d to %d with a deletion", second, n)
	}
}
