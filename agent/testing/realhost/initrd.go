package realhost

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// boot makes the kernel and the initrd of the machine: busybox and the modules of its
// disk, which is a tenth of what initramfs-tools makes, and boots sooner.
func (v *VM) boot(tree Tree) {
	v.t.Helper()
	kernels, err := filepath.Glob(filepath.Join(tree.dir(), "boot", "vmlinuz-*"))
	if err != nil || len(kernels) != 1 {
		v.t.Fatalf("the tree %s has not one kernel: %v, %v", tree, kernels, err)
	}
	kernel, err := os.ReadFile(kernels[0])
	if err == nil {
		err = os.WriteFile(filepath.Join(v.dir, "kernel"), kernel, 0o600)
	}
	if err != nil {
		v.t.Fatal(err)
	}
	version := strings.TrimPrefix(filepath.Base(kernels[0]), "vmlinuz-")
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		v.t.Fatalf("a virtual machine needs busybox (Debian: busybox-static): %v", err)
	}
	var c cpio
	for _, dir := range []string{"bin", "m", "dev", "proc", "root"} {
		c.add(dir, 0o40755, nil)
	}
	c.file(v, busybox, "bin/busybox")
	for i, module := range v.modules(filepath.Join(tree.dir(), "lib", "modules", version), "virtio_pci", "virtio_blk", "virtio_net") {
		c.file(v, module, fmt.Sprintf("m/%02d.ko", i))
	}
	c.add("init", 0o100755, []byte(initScript))
	if err := os.WriteFile(filepath.Join(v.dir, "initrd"), c.end(), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

const initScript = `#!/bin/busybox sh
/bin/busybox mount -t devtmpfs d /dev
/bin/busybox mount -t proc p /proc
for word in $(/bin/busybox cat /proc/cmdline); do case $word in root=*) disk=${word#root=} ;; esac; done
/bin/busybox umount /proc
for m in /m/*; do /bin/busybox insmod $m; done
n=0; while [ ! -b $disk ] && [ $n -lt 200 ]; do /bin/busybox usleep 50000; n=$((n + 1)); done
/bin/busybox mount -t ext4 -o rw $disk /root || exec /bin/busybox reboot -f
/bin/busybox mount --move /dev /root/dev
exec /bin/busybox switch_root /root /sbin/init
`

// modules returns the files of the modules and of all that they need, in the order in
// which they are loaded.
func (v *VM) modules(dir string, names ...string) (all []string) {
	v.t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		v.t.Fatal(err)
	}
	for _, name := range names {
		for line := range strings.Lines(string(text)) {
			file, needs, _ := strings.Cut(strings.TrimSpace(line), ":")
			base, _, _ := strings.Cut(filepath.Base(file), ".")
			if strings.ReplaceAll(base, "-", "_") != name {
				continue
			}
			// What is named last is needed by what is named before (modules.dep(5)).
			wanted := append([]string{file}, strings.Fields(needs)...)
			slices.Reverse(wanted)
			for _, one := range wanted {
				if path := filepath.Join(dir, one); !slices.Contains(all, path) {
					all = append(all, path)
				}
			}
		}
	}
	return all
}

// cpio is an archive in the "newc" format of an initrd (kernel: Documentation,
// driver-api/early-userspace/buffer-format).
type cpio struct {
	out   bytes.Buffer
	inode int
}

func (c *cpio) add(name string, mode uint32, data []byte) {
	c.inode++
	fmt.Fprintf(&c.out, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", c.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
	c.out.WriteString(name + "\x00")
	c.pad()
	c.out.Write(data)
	c.pad()
}

func (c *cpio) pad() {
	for c.out.Len()%4 != 0 {
		c.out.WriteByte(0)
	}
}

// file adds a file of this machine, unpacked.
func (c *cpio) file(v *VM, from, name string) {
	v.t.Helper()
	data, err := os.ReadFile(from)
	if strings.HasSuffix(from, ".xz") {
		data, err = exec.CommandContext(v.t.Context(), "xz", "-dc", from).Output() //nolint:gosec // a module of the tree
	}
	if err != nil {
		v.t.Fatal(err)
	}
	c.add(name, 0o100755, data)
}

func (c *cpio) end() []byte {
	c.add("TRAILER!!!", 0, nil)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(c.out.Bytes())
	_ = w.Close()
	return packed.Bytes()
}
