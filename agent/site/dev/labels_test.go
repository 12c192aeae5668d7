package dev_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// TestSimulatedHostHasLabelsOfFiles checks that a file in the folder of a simulated host gives it a label
// that changes with the file, as on a real host.
func TestSimulatedHostHasLabelsOfFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, api := begin(t, dir, 1)
	defer func() { _ = d.Close() }()
	folder := filepath.Join(dir, "hosts", "h01", "labels.d")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, active := range []string{"true", "false"} {
		if err := os.WriteFile(filepath.Join(folder, "active"), []byte("active="+active+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"ring": "0", "active": active}
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			h, err := api.Host(t.Context(), dev.Tenant, "h01")
			if err == nil && maps.Equal(h.Labels, want) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("h01 has the labels %v, %v; want %v", h.Labels, err, want)
			}
		}
	}
}
