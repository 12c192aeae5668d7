package exec

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

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
