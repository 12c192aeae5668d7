package ostree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/watchtest"
)

// TestVersionPaths checks that another deployment is told, and another order of those that
// there are, but no work in the repository or in a deployment.
func TestVersionPaths(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	in := func(name string) string { return filepath.Join(root, name) }
	if err := errors.Join(
		os.MkdirAll(in("etc"), 0o700), os.MkdirAll(in("usr/lib"), 0o700), os.MkdirAll(in("ostree/repo/tmp"), 0o700), os.MkdirAll(in("ostree/deploy/debian/deploy/aaa.0/etc"), 0o700), os.MkdirAll(in("ostree/deploy/debian/var"), 0o700),
		os.Symlink("boot.0.0", in("ostree/boot.0")),
	); err != nil {
		t.Fatal(err)
	}
	s := &Strategy{o: Options{root: root}}
	watchtest.Tells(t, s.VersionPaths(), true, "a deployment", func() error { return os.Mkdir(in("ostree/deploy/debian/deploy/bbb.0"), 0o700) })
	watchtest.Tells(t, s.VersionPaths(), true, "another order", func() error {
		return errors.Join(os.Symlink("boot.0.1", in("ostree/boot.tmp")), os.Rename(in("ostree/boot.tmp"), in("ostree/boot.0")))
	})
	watchtest.Tells(t, s.VersionPaths(), false, "a download or a change of a file", func() error {
		return errors.Join(os.WriteFile(in("ostree/repo/tmp/x"), nil, 0o600), os.WriteFile(in("ostree/deploy/debian/deploy/aaa.0/etc/hosts"), nil, 0o600), os.WriteFile(in("ostree/deploy/debian/var/log"), nil, 0o600))
	})
}
