package hostfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// mount is a line of /proc/self/mountinfo, proc_pid_mountinfo(5).
type mount struct {
	device, path, kind, source string
	// readOnly is that of the file system: it may be writable while this mount of it is not.
	readOnly bool
}

// SyncMounts has everything on disk that was written to the file systems of this host, since
// packages have files on all of them: a package manager syncs what it writes, and not the
// names that it gives to it in a folder of another file system than its database. It tells
// which file systems are left out, and why.
func (r Root) SyncMounts(tell func(string)) error {
	info, err := os.ReadFile(r.Path("/proc/self/mountinfo"))
	if err != nil {
		return fmt.Errorf("cannot tell which file systems to sync: %w", err)
	}
	mounts, err := parseMounts(string(info))
	if err != nil {
		return fmt.Errorf("cannot tell which file systems to sync: %w", err)
	}
	return syncMounts(mounts, func(path string) error { return syncFilesystem(r.Path(path)) }, tell)
}

// syncMounts syncs each file system once. One that cannot be synced keeps no other from it.
func syncMounts(mounts []mount, sync func(path string) error, tell func(string)) error {
	var problems []error
	done := map[string]bool{}
	for _, m := range mounts {
		if done[m.device] {
			continue
		}
		syncs, why := m.syncs()
		if why != "" {
			tell(fmt.Sprintf("not synced to disk: %s, %s", m.path, why))
		}
		done[m.device] = true
		if !syncs {
			continue
		}
		// What another mount hides cannot be reached, and no package has files there.
		if err := sync(m.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, fmt.Errorf("cannot sync the file system of %s, where packages may have files: %w", m.path, err))
		}
	}
	return errors.Join(problems...)
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
