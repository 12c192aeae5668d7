package check

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestInstalled checks that only scripts are told of that a rollout can name and
// that can be run.
func TestInstalled(t *testing.T) {
	t.Parallel()
	dir := install(t, "exit 0")
	for name, mode := range map[string]os.FileMode{"readme.txt": 0o644, ".hidden": 0o755, "open": 0o777, "of two words": 0o755} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if got := (&Runner{Scripts: dir}).Installed(); !slices.Equal(got, []string{"it"}) {
		t.Errorf("installed are %q", got)
	}
	for name, dir := range map[string]string{"no folder": "", "a folder that is not there": dir + "/none"} {
		if got := (&Runner{Scripts: dir}).Installed(); got == nil || len(got) != 0 {
			t.Errorf("of %s, installed are %q", name, got)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // that is what must not be
		t.Fatal(err)
	}
	if got := (&Runner{Scripts: dir}).Installed(); len(got) != 0 {
		t.Errorf("of a folder of everybody, installed are %q", got)
	}
}
