package smallfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRead checks that files are read whole, that a file which is too large, a link and a pipe are
// found without their content, and that nobody waits for the writer of a pipe.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(path("small"), []byte("0123"), 0o600), os.WriteFile(path("large"), []byte("01234"), 0o600),
		os.Symlink("small", path("link")), syscall.Mkfifo(path("pipe"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		body    string
		regular bool
		size    int64
	}{"small": {"0123", true, 4}, "large": {"", true, 5}, "link": {"", false, 5}, "pipe": {"", false, 0}} {
		f, found := Read(path(name), 4)
		if !found || f.Name != name || string(f.Body) != want.body || f.Mode.IsRegular() != want.regular || f.Size != want.size || f.Err != nil {
			t.Errorf("%s is %+v, %t", name, f, found)
		}
		if self := os.Geteuid(); f.Owner != self || !f.IsTrusted(self) || f.IsTrusted(self+1) != (self == 0) {
			t.Errorf("%s belongs to %d", name, f.Owner)
		}
	}
	if _, found := Read(path("gone"), 4); found {
		t.Error("a file is found that does not exist")
	}
}

// TestReplaced checks that a file is not read if it is another one than that whose owner was looked at.
func TestReplaced(t *testing.T) {
	t.Parallel()
	looked, err := os.Lstat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := os.Open(other) //nolint:gosec // a file of this test
	if err != nil {
		t.Fatal(err)
	}
	if body, err := readSame(opened, looked, 10); body != nil || err == nil || !strings.Contains(err.Error(), "it is being replaced") {
		t.Errorf("it is read as %q, %v", body, err)
	}
}
