package rauc

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/watchtest"
)

// TestStatusFiles checks which files of a system.conf change with the versions.
func TestStatusFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conf string
		want []string
	}{
		"a status file":       {"[system]\ncompatible=x\nstatusfile=/data/rauc.status\nbootloader=grub\ngrubenv = /boot/grub/grubenv\n", []string{"/data/rauc.status", "/boot/grub/grubenv"}},
		"a data folder":       {"# a comment\n[system]\ndata-directory=/data/rauc\n", []string{"/data/rauc/central.raucs"}},
		"in the slots":        {"[system]\nstatusfile=per-slot\n", nil},
		"of another section":  {"[slot.rootfs.0]\nstatusfile=/x\n[system]\n[keyring]\ngrubenv=/y\n", nil},
		"nothing that is one": {"statusfile=/x\n[system\x00]\nstatusfile\n=\n[", nil},
		"empty":               {"", nil},
	} {
		if got := statusFiles(c.conf); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestVersionPaths checks that RAUC's change of a slot is told, and that a folder which is
// not there breaks no watch.
func TestVersionPaths(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	status := filepath.Join(root, "data/rauc.status")
	s := &Strategy{o: Options{root: root}}
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "usr/lib/rauc"), 0o700), os.MkdirAll(filepath.Join(root, "etc"), 0o700), os.MkdirAll(filepath.Dir(status), 0o700)); err != nil {
		t.Fatal(err)
	}
	conf := "[system]\nstatusfile=/data/rauc.status\ngrubenv=/nowhere/grubenv\n"
	if err := os.WriteFile(filepath.Join(root, "usr/lib/rauc/system.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	replace := func() error { // RAUC writes another file and renames it.
		return errors.Join(os.WriteFile(status+".new", []byte("[slot.rootfs.1]\n"), 0o600), os.Rename(status+".new", status))
	}
	watchtest.Tells(t, s.VersionPaths(), true, "another version of a slot", replace)
	watchtest.Tells(t, s.VersionPaths(), false, "another file", func() error { return os.WriteFile(filepath.Join(root, "data/other"), nil, 0o600) })
}
