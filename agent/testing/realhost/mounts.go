package realhost

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mount is a file system of a virtual machine, on a disk of its own with a volatile cache.
type Mount struct {
	Path string
	// Kind is ext4, or btrfs or xfs, which are empty at first. "/" is an ext4.
	Kind string
	// Options are those of mount.
	Options string
}

// Volatile gives a virtual machine that was never on such disks, the first for "/", and
// returns what feeds them.
func (v *VM) Volatile(mounts ...Mount) *Power {
	v.t.Helper()
	if v.image != "" {
		v.t.Fatal("the disks of a virtual machine are decided before its first start")
	}
	v.mounts = append([]Mount{{Path: "/", Kind: "ext4"}}, mounts...)
	var table strings.Builder
	for i, m := range v.mounts {
		// Without its disks the machine would start without them, and its worker on an empty folder.
		options := strings.TrimPrefix(m.Options+",x-systemd.device-timeout=0", ",")
		fmt.Fprintf(&table, "/dev/vd%c %s %s %s 0 0\n", 'a'+i, m.Path, m.Kind, options)
		if err := os.MkdirAll(v.Path(m.Path), 0o755); err != nil { //nolint:gosec // a folder of the disk
			v.t.Fatal(err)
		}
	}
	v.WriteFile("/etc/fstab", table.String())
	v.power = &Power{off: v.kill}
	return v.power
}

// kill ends the machine at once, if it is on.
func (v *VM) kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.qemu != nil {
		kill(v.qemu)
	}
}

// mounted fails the test unless the machine has mounted its disks: on a machine that is too slow for
// the limits of systemd it has not, and what it says then is of another disk.
func (v *VM) mounted() {
	v.t.Helper()
	for _, m := range v.mounts {
		v.Must("mountpoint " + m.Path)
	}
}

func (v *VM) diskSocket(i int) string { return filepath.Join(v.dir, fmt.Sprintf("disk%d", i)) }

// format makes the disks of the files and serves them.
func (v *VM) format() {
	v.t.Helper()
	for i, m := range v.mounts {
		image := fmt.Sprintf("%s%d", v.image, i)
		switch m.Kind {
		case "ext4":
			v.fileSystem(image, v.Path(m.Path), "2G")
		case "btrfs":
			v.make(image, "mkfs.btrfs", "-q")
		case "xfs":
			v.make(image, "mkfs.xfs", "-q")
		default:
			v.t.Fatalf("no file system %q", m.Kind)
		}
		v.power.serve(v.t, m.Path, image, v.diskSocket(i))
	}
}

// make makes an empty image and a file system in it.
func (v *VM) make(image, name string, args ...string) {
	v.t.Helper()
	err := os.WriteFile(image, nil, 0o600)
	if err == nil {
		err = os.Truncate(image, 1<<30)
	}
	if err != nil {
		v.t.Fatal(err)
	}
	if out, err := output(v.t.Context(), name, append(args, image)...); err != nil {
		v.t.Fatalf("%s: %v: %s", name, err, out)
	}
}
