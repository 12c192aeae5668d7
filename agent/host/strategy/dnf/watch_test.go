package dnf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/watchtest"
)

// TestVersionPaths checks that a change of the packages is told, in each form that the
// database of rpm has, and that to read the database is none: rpm -qa writes the shared
// memory of an SQLite database, and a worker that watched it asked dnf for a plan each 50 s.
func TestVersionPaths(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"SQLite": "var/lib/rpm/rpmdb.sqlite", "SQLite of Fedora": "usr/lib/sysimage/rpm/rpmdb.sqlite", "ndb": "usr/lib/sysimage/rpm/Packages.db", "Berkeley": "var/lib/rpm/Packages",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			path := filepath.Join(root, file)
			write := func(path string) func() error {
				return func() error { return os.WriteFile(path, []byte(t.Name()), 0o600) }
			}
			for _, folder := range []string{"etc", "usr/lib", filepath.Dir(file)} {
				if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := write(path)(); err != nil {
				t.Fatal(err)
			}
			s := &Strategy{host: hostfs.Root(root)}
			watchtest.Tells(t, s.VersionPaths(), true, "a change of the packages", write(path))
			watchtest.Tells(t, s.VersionPaths(), false, "a reading", write(path+"-shm"))
			watchtest.Tells(t, s.VersionPaths(), false, "a lock", write(filepath.Join(filepath.Dir(path), ".rpm.lock")))
		})
	}
}
