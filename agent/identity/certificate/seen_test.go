package certificate

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
)

// TestSeenFormat checks that the file with the newest lists is written as before, and that what
// an earlier version has written is read.
func TestSeenFormat(t *testing.T) {
	t.Parallel()
	want := seenLists{
		"6f1ed002ab5595859014ebf0951522d9": {Issuer: "CN=site", Number: "340282366920938463463374607431768211456", ThisUpdate: time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)},
		"b5bb9d8014a0f9b1d61e21e796d78dcc": {Issuer: "CN=other", ThisUpdate: time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)},
	}
	path := filepath.Join(t.TempDir(), "revocations.json")
	if err := writeSeen(path, want); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept := formattest.Golden(t, "testdata/format1/revocations.json", body)
	if err := os.WriteFile(path, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readSeen(path); err != nil || !maps.Equal(got, want) {
		t.Errorf("read is %v, %v", got, err)
	}
}
