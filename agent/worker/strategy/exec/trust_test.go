package exec

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTrusted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		mode        fs.FileMode
		owner, self int
		want        string
	}{
		"of root, for root":      {0o755, 0, 0, ""},
		"of root, for a user":    {0o755, 0, 1000, ""},
		"of the user":            {0o700, 1000, 1000, ""},
		"of another, for root":   {0o755, 1000, 0, "belongs to user 1000"},
		"of another, for a user": {0o755, 1001, 1000, "belongs to user 1001"},
		"of nobody known":        {0o755, -1, 0, "belongs to user -1"},
		"group may write":        {0o775, 0, 0, "has mode 0775"},
		"all may write":          {0o757, 0, 0, "has mode 0757"},
		"sticky, all may write":  {fs.ModeSticky | 0o777, 0, 0, "has mode 0777"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := trusted("/x", row.mode, row.owner, row.self)
			if row.want == "" && err != nil {
				t.Fatal(err)
			}
			if row.want != "" {
				wantError(t, err, "/x "+row.want)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	remove := func(name string) func(string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
	}
	chmod := func(name string, mode fs.FileMode) func(string) error {
		return func(dir string) error { return os.Chmod(filepath.Join(dir, name), mode) }
	}
	link := func(dir string) error {
		return errors.Join(os.Remove(filepath.Join(dir, "resume")), os.Symlink("versions", filepath.Join(dir, "resume")))
	}
	for name, row := range map[string]struct {
		change func(dir string) error
		want   []string
	}{
		"all is well":             {func(string) error { return nil }, nil},
		"a file of no concern":    {func(dir string) error { return os.WriteFile(filepath.Join(dir, "README"), nil, 0o600) }, nil},
		"no folder":               {os.RemoveAll, []string{"no such file"}},
		"a file for a folder":     {func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) }, []string{"is not a folder"}},
		"the folder for all":      {chmod("", 0o777), []string{"scripts has mode 0777"}},
		"no versions":             {remove("versions"), []string{"versions is missing; it is required"}},
		"no upgrade, no resume":   {func(dir string) error { return errors.Join(remove("upgrade")(dir), remove("resume")(dir)) }, []string{"upgrade is missing", "resume is missing"}},
		"not executable":          {chmod("upgrade", 0o644), []string{"upgrade has mode 0644; it should be executable"}},
		"writable by the group":   {chmod("upgrade", 0o775), []string{"upgrade has mode 0775; nobody but its owner"}},
		"a link":                  {link, []string{"resume is a symbolic link; it should be a regular file"}},
		"an optional one is open": {chmod("verify", 0o777), []string{"verify has mode 0777"}},
		"a folder for a script":   {func(dir string) error { return os.Mkdir(filepath.Join(dir, "prepare"), 0o755) }, []string{"prepare is a folder"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, map[string]string{"verify": ""})
			s := h.open()
			if err := row.change(h.opts.Dir); err != nil {
				t.Fatal(err)
			}
			err := s.Detect(t.Context())
			if row.want == nil && err != nil {
				t.Fatal(err)
			}
			if row.want != nil {
				wantError(t, err, row.want...)
			}
		})
	}
}

func TestAScriptIsCheckedBeforeEachStart(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"the script": "upgrade", "the folder": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, map[string]string{"upgrade": `touch "$WORK/started"`})
			s := h.open()
			if err := s.Detect(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(h.opts.Dir, path), 0o777); err != nil {
				t.Fatal(err)
			}
			_, err := s.Upgrade(t.Context(), job())
			wantError(t, err, "cannot run upgrade: ", "nobody but its owner should be able to write it")
			if _, err := os.Stat(h.path("started")); !errors.Is(err, os.ErrNotExist) {
				t.Fatal("it was started")
			}
		})
	}
}

func TestOwnerIsThatOfTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := os.Geteuid()
	if want == 0 {
		want = 4711
		if err := os.Chown(path, want, -1); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := owner(info); got != want {
		t.Fatalf("got %d, want %d", got, want)
	}
	if !strings.HasPrefix(kind(fs.ModeNamedPipe), "special") {
		t.Fatal("a named pipe is no special file")
	}
}
