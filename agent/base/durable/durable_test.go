package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// recorder is a disk that records its calls and the contents of the folder at
// each call, and fails at one call.
type recorder struct {
	t     *testing.T
	path  string
	fails string
	calls []string
}

// call records a call with the contents of the temporary file and of the file
// that it replaces.
func (r *recorder) call(what string) error {
	r.t.Helper()
	names, err := filepath.Glob(filepath.Join(filepath.Dir(r.path), ".file.*"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range append(names, r.path) {
		body, err := os.ReadFile(name)
		if err != nil {
			r.t.Fatal(err)
		}
		what += " " + string(body)
	}
	r.calls = append(r.calls, what)
	if r.fails != "" && strings.HasPrefix(what, r.fails) {
		return syscall.EIO
	}
	return nil
}

// disk does the real calls except sync.
func (r *recorder) disk() disk {
	return disk{
		sync: func(f *os.File) error {
			if filepath.Dir(f.Name()) != filepath.Dir(r.path) || f.Name() == r.path {
				r.t.Errorf("%s is synced", f.Name())
			}
			return r.call("sync")
		},
		rename: func(from, to string) error {
			if err := r.call("rename"); err != nil {
				return err
			}
			return os.Rename(from, to)
		},
		syncFolder: func(path string) error {
			if path != filepath.Dir(r.path) {
				r.t.Errorf("folder %s is synced", path)
			}
			return r.call("folder")
		},
	}
}

func newRecorder(t *testing.T, fails string) *recorder {
	t.Helper()
	r := &recorder{t: t, path: filepath.Join(t.TempDir(), "file"), fails: fails}
	if err := os.WriteFile(r.path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWriteFile checks that the content is synced before the rename and the
// folder after it.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, "")
	if err := r.disk().writeFile(r.path, []byte("new"), 0o640); err != nil {
		t.Fatal(err)
	}
	if want := []string{"sync new old", "rename new old", "folder new"}; !slices.Equal(r.calls, want) {
		t.Errorf("the disk was asked for %q, not %q", r.calls, want)
	}
	info, err := os.Stat(r.path)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("the file has mode %s, %v", info.Mode(), err)
	}
}

// TestWriteFileFails checks that each failure is returned, that the file keeps
// its old content until the new content is synced, and that no temporary file
// stays.
func TestWriteFileFails(t *testing.T) {
	t.Parallel()
	for fails, content := range map[string]string{"sync": "old", "rename": "old", "folder": "new"} {
		t.Run(fails, func(t *testing.T) {
			t.Parallel()
			r := newRecorder(t, fails)
			err := r.disk().writeFile(r.path, []byte("new"), 0o600)
			if want := "cannot write " + r.path + ": input/output error"; !errors.Is(err, syscall.EIO) || err.Error() != want {
				t.Errorf("the error is %v, not %s", err, want)
			}
			if body, err := os.ReadFile(r.path); err != nil || string(body) != content {
				t.Errorf("the file holds %q, %v", body, err)
			}
			if left, err := os.ReadDir(filepath.Dir(r.path)); err != nil || len(left) != 1 {
				t.Errorf("the folder holds %v, %v", left, err)
			}
		})
	}
}

// TestSystem checks that WriteFile makes the same calls to the system as to the
// recorder: a sync that must fail shows that it was called.
func TestSystem(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := WriteFile(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if body, err := os.ReadFile(path); err != nil || string(body) != "new" {
		t.Errorf("the file holds %q, %v", body, err)
	}
	closed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := system().sync(closed); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a file that is closed was synced: %v", err)
	}
	if err := system().syncFolder(filepath.Join(filepath.Dir(path), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there was synced: %v", err)
	}
}
