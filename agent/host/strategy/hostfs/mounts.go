package hostfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mount is a line of /proc/self/mountinfo, proc_pid_mountinfo(5).
type mount struct {
	device, path, kind, source string
	// readOnly is that of the file system: it may be writable while this mount of it is not.
	readOnly bool
}

// othersLimit bounds the sync of a file system on which packages have no files: a disk that does
// not answer must not hold up an upgrade.
const othersLimit = time.Minute

// SyncMounts has everything on disk that was written to the file systems of this host, since
// packages may have files on all of them: a package manager syncs what it writes, and not the
// names that it gives to it in a folder of another file system than its database. It tells
// which file systems are left out or cannot be synced, and why. It is an error only for those
// on which packages have files: a broken backup disk fails no upgrade.
func (r Root) SyncMounts(ctx context.Context, tell func(string)) error {
	info, err := os.ReadFile(r.Path("/proc/self/mountinfo"))
	if err != nil {
		return fmt.Errorf("cannot tell which file systems to sync: %w", err)
	}
	mounts, err := parseMounts(string(info))
	if err != nil {
		return fmt.Errorf("cannot tell which file systems to sync: %w", err)
	}
	return syncMounts(ctx, mounts, func(path string) error { return syncFilesystem(r.Path(path)) }, tell)
}

// syncMounts syncs each file system once, those with packages first. One that cannot be synced
// keeps no other from it.
func syncMounts(ctx context.Context, mounts []mount, sync func(path string) error, tell func(string)) error {
	var problems []error
	done := map[string]bool{}
	packagesFirst := slices.Clone(mounts)
	slices.SortStableFunc(packagesFirst, func(a, b mount) int { return cmp.Compare(b.rank(), a.rank()) })
	for _, m := range packagesFirst {
		if done[m.device] {
			continue
		}
		syncs, why := m.syncs()
		if why != "" {
			tell(fmt.Sprintf("not synced to disk: %s, %s", m.path, why))
		}
		var err error
		if syncs {
			err = m.bounded(ctx, sync)
		}
		// What another mount hides cannot be reached, and no package has files there; the
		// file system may be reached where it is mounted as well.
		done[m.device] = !errors.Is(err, fs.ErrNotExist)
		switch {
		case err == nil, !done[m.device]:
		case m.hasPackages():
			problems = append(problems, fmt.Errorf("cannot sync the file system of %s, where packages may have files: %w", m.path, err))
		default:
			tell(fmt.Sprintf("not synced to disk: %s: %v", m.path, err))
		}
	}
	return errors.Join(problems...)
}

// bounded syncs a file system, but waits for it no longer than it has to.
func (m mount) bounded(ctx context.Context, sync func(path string) error) error {
	if !m.hasPackages() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, othersLimit, fmt.Errorf("it does not answer for %s", othersLimit))
		defer cancel()
	}
	return within(ctx, func() error { return sync(m.path) })
}

// within calls a function that nobody can end, and leaves it alone when ctx ends.
func within(ctx context.Context, call func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- call() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hasPackages reports whether packages may have files on a file system, by where it is mounted.
// On others, such as a backup disk, they have none, or none that the host needs to start.
func (m mount) hasPackages() bool {
	exact := []string{"/", "/efi", "/srv", "/var", "/var/cache", "/var/lib"}
	below := []string{"/boot", "/etc", "/opt", "/usr"}
	return slices.Contains(exact, m.path) || slices.ContainsFunc(below, func(folder string) bool {
		return m.path == folder || strings.HasPrefix(m.path, folder+"/")
	})
}

func (m mount) rank() int {
	if m.hasPackages() {
		return 1
	}
	return 0
}

// noDevice are the local file systems on disks that name no device as their source.
var noDevice = []string{"bcachefs", "btrfs", "overlay", "ubifs", "virtiofs", "zfs"}

// network are the file systems of other machines. Their server may not answer for ever.
var network = []string{"9p", "afs", "ceph", "cifs", "coda", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3"}

// syncs reports whether a file system is synced. why says why it is not, if somebody may wonder.
func (m mount) syncs() (ok bool, why string) {
	local := strings.HasPrefix(m.source, "/dev/") || slices.Contains(noDevice, m.kind)
	switch {
	case slices.Contains(network, m.kind):
		return false, "a network file system (" + m.kind + ")"
	case m.kind == "fuse", m.kind == "fuseblk", strings.HasPrefix(m.kind, "fuse."):
		return false, "a file system of a program (" + m.kind + ")"
	default:
		return local && !m.readOnly, "" // The others are in memory, or of the kernel.
	}
}

func parseMounts(info string) (mounts []mount, err error) {
	for line := range strings.Lines(info) {
		line = strings.TrimRight(line, "\n")
		before, after, ok := strings.Cut(line, " - ")
		at, of := strings.Split(before, " "), strings.Split(after, " ") // A path may have other blanks.
		if !ok || len(at) < 6 || len(of) < 2 {
			return nil, fmt.Errorf("/proc/self/mountinfo has the line %.200q, which is not a mount", line)
		}
		m := mount{device: at[2], path: unescape(at[4]), kind: of[0], source: unescape(of[1])}
		if len(of) > 2 {
			m.readOnly = slices.Contains(strings.Split(of[2], ","), "ro")
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// unescape replaces the octal numbers that the kernel writes for blanks and backslashes.
func unescape(word string) string {
	var out strings.Builder
	for i := 0; i < len(word); i++ {
		if code := min(i+4, len(word)); word[i] == '\\' && code == i+4 {
			if n, err := strconv.ParseUint(word[i+1:code], 8, 8); err == nil {
				out.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		out.WriteByte(word[i])
	}
	return out.String()
}
