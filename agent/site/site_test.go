package site

import (
	"fmt"
	"log/slog"
	"testing"
	"time"
)

// TestManyTenants checks that a site has room for many tenants, and that it
// opens again with fewer: the logs of the others stay.
func TestManyTenants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var tenants []string
	for i := range 40 {
		tenants = append(tenants, fmt.Sprintf("tenant-%d", i))
	}
	for _, served := range [][]string{tenants, tenants[:2], tenants} {
		s, err := Open(t.Context(), Options{
			Name: "test", Zone: time.UTC, Dir: dir, Tenants: served, API: Endpoint{Listen: "127.0.0.1:0"},
			Holder: "a test", Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatalf("with %d tenants: %v", len(served), err)
		}
		for _, tenant := range served {
			if err := s.Controller(tenant).Configured(t.Context(), 0); err != nil {
				t.Errorf("the controller of %s: %v", tenant, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
