package script

import (
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

func TestOwner(t *testing.T) {
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

func wantError(t *testing.T, err error, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got error %v, want %q in it", err, want)
		}
	}
}
