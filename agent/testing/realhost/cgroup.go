package realhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// Control groups of containers are children of the group of this process and bear the
// name NAME-PID-NUMBER.
const groupName = "realhost"

var groups atomic.Int64

// group is a control group for one container, in each hierarchy that systemd uses.
// Without it all containers of this machine would be in one, since nspawn names the
// groups of what it starts "payload" and "supervisor": the systemd of each would remove
// the empty groups of the others, and a service that starts at this moment fails with
// "Failed to attach to cgroup".
type group struct {
	name string
	// dirs are its folders; there may be none, where this machine has no control groups.
	dirs []string
}

// newGroup returns a control group that is removed after the test, and removes those of
// tests that were killed.
func newGroup(t testing.TB) *group {
	t.Helper()
	parents, err := ownGroups()
	if err != nil {
		t.Fatal(err)
	}
	g := &group{name: fmt.Sprintf("%s-%d-%d", groupName, os.Getpid(), groups.Add(1))}
	for _, parent := range parents {
		sweep(parent)
		g.dirs = append(g.dirs, filepath.Join(parent, g.name))
	}
	t.Cleanup(func() {
		if err := g.remove(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// renew makes the group, without what the boot before left in it. No process is in it.
func (g *group) renew() error {
	if err := g.remove(); err != nil {
		return err
	}
	for _, dir := range g.dirs {
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // as all control groups
			return fmt.Errorf("cannot make the control group of a container: %w", err)
		}
	}
	return nil
}

// remove removes the group with those below it.
func (g *group) remove() error {
	for _, dir := range g.dirs {
		if err := removeGroup(dir); err != nil {
			return err
		}
	}
	return nil
}

// enter is a script that puts itself into the groups before "--" and becomes the command
// after it.
const enter = `while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit; shift; done; shift; exec "$@"`

// run returns the arguments of sh for a command in the group.
func (g *group) run(command ...string) []string {
	return slices.Concat([]string{"-c", enter, "sh"}, g.dirs, []string{"--"}, command)
}

// removeGroup removes a control group with those below it, if it is there.
func removeGroup(dir string) error {
	var all []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	slices.Reverse(all)
	for _, path := range all {
		if err == nil {
			err = os.Remove(path)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot remove the control group of a container: %w", err)
	}
	return nil
}

// sweep removes the groups whose test has ended.
func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, groupName+"-*"))
	for _, dir := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupName+"-"), "-")
		if _, err := os.Stat(filepath.Join("/proc", pid)); os.IsNotExist(err) {
			_ = removeGroup(dir) // Another test may sweep, too.
		}
	}
}

// ownGroups returns the folders of the control group of this process in the hierarchies
// that systemd uses: the unified one and its own of version 1.
func ownGroups() ([]string, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("cannot find the control group of the tests: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cannot find the control groups of this machine: %w", err)
	}
	return findGroups(string(groups), string(mounts)), nil
}

// findGroups returns where the control group of a process is mounted; groups and mounts
// are its files cgroup and mountinfo.
func findGroups(groups, mounts string) []string {
	var found []string
	for _, hierarchy := range []struct{ group, kind, option string }{{"0::", "cgroup2", ""}, {":name=systemd:", "cgroup", "name=systemd"}} {
		path, member := "", false
		for line := range strings.Lines(groups) {
			if _, rest, ok := strings.Cut(strings.TrimSpace(line), hierarchy.group); ok && !member {
				path, member = rest, true
			}
		}
		for line := range strings.Lines(mounts) {
			// ID PARENT DEVICE ROOT POINT OPTIONS ... - KIND SOURCE SUPER-OPTIONS
			before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
			mount, kind := strings.Fields(before), strings.Fields(after)
			if !member || len(mount) < 6 || len(kind) < 3 || kind[0] != hierarchy.kind || hierarchy.option != "" && !slices.Contains(strings.Split(kind[2], ","), hierarchy.option) {
				continue
			}
			// A container may see but a part of the hierarchy.
			below, err := filepath.Rel(mount[3], path)
			if err == nil && below != ".." && !strings.HasPrefix(below, "../") {
				found = append(found, filepath.Join(mount[4], below))
				break
			}
		}
	}
	return found
}
