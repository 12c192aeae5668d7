package dev_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/busy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// TestSimulatedHostIsBusy checks that a busy lease in the folder of a simulated host is told
// at once, and that its end is.
func TestSimulatedHostIsBusy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, api := begin(t, dir, 1)
	defer func() { _ = d.Close() }()
	until := func(want bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			h, err := api.Host(t.Context(), dev.Tenant, "h01")
			if err == nil && (h.Busy != nil) == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("h01 is busy with %+v, %v; want %v", h.Busy, err, want)
			}
		}
	}
	until(false)
	leases := filepath.Join(dir, "hosts", "h01", "busy")
	name, err := busy.Create(leases, busy.Lease{Reason: "backup", Until: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	until(true)
	if err := busy.End(leases, name); err != nil {
		t.Fatal(err)
	}
	until(false)
}
