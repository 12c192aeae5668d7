package realhost

import (
	"context"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"
)

// LosesUnsynced moves the files of a container that is off to an ext4 of its own. From now on a
// power cut loses what was not synced, as on a virtual machine: data that were not written
// and changes that are not in the journal. What the disk was given it keeps. A cut costs as little
// as before, so a test can make dozens of them.
//
// A program that syncs all file systems of this machine syncs this one, too.
func (c *Container) LosesUnsynced() {
	c.t.Helper()
	if c.On() {
		c.t.Fatal("a container whose files are to be moved is on; cut it first")
	}
	c.outside(`mke2fs -q -t ext4 -d "$root" "$image" 2G; mount -o loop "$image" "$root"`)
	c.loses = true
}

// sync writes to the disk what the boot loader has written: it uses no file system that could lose it.
func (c *Container) sync() error { return c.onRoot(unix.Syncfs) }

// onRoot calls f with a descriptor of the folder that has all files of the container.
func (c *Container) onRoot(f func(root int) error) error {
	root, err := os.Open(c.Path("/"))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return f(int(root.Fd())) //nolint:gosec // a descriptor
}

// outside runs a script in the namespace of mounts that the disk is in.
func (c *Container) outside(script string) {
	c.t.Helper()
	// It may be turned off when the test is over.
	out, err := output(context.WithoutCancel(c.t.Context()), "nsenter", "--mount", "--target", c.inside, "--",
		"env", "root="+c.root, "image="+c.dir+"/image", "sh", "-ec", script)
	if err != nil {
		c.t.Fatalf("cannot mount the disk of %s: %v: %s", c.options.Hostname, err, out)
	}
}

// Of Linux, fs/ext4: the file system stops at once. Its journal is left as it is on the disk, or
// is committed before.
const (
	ext4Shutdown   = 0x8004587d // EXT4_IOC_SHUTDOWN
	ext4LogFlush   = 1          // EXT4_GOING_FLAGS_LOGFLUSH
	ext4NoLogFlush = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH
)

// lose has the file system of a container that is off lose what was not synced, and mounts it
// again, which replays its journal. One cut in two commits the journal before: then the disk has
// the names that files were given until then, and of new files nothing else. ext4 does that every
// 5 s, and when any program syncs a file.
func (c *Container) lose() {
	c.t.Helper()
	how := ext4NoLogFlush
	if rand.IntN(2) == 0 { //nolint:gosec // either happens
		how = ext4LogFlush
		c.t.Logf("%s has committed its journal right before the cut", c.options.Hostname)
	}
	err := c.onRoot(func(root int) error { return unix.IoctlSetPointerInt(root, ext4Shutdown, how) })
	if err != nil {
		c.t.Fatalf("cannot stop the file system of %s: %v", c.options.Hostname, err)
	}
	// The namespaces of its processes have it until the last of them has ended. Mounted a second
	// time before that, it would be the same file system, which has stopped.
	c.outside(`umount "$root"
		for n in $(seq 300); do
			if [ -z "$(losetup -j "$image")" ]; then mount -o loop "$image" "$root"; exit; fi
			sleep 0.1
		done
		echo "a process has it still"; exit 1`)
}
