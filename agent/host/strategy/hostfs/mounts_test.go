package hostfs

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// machine are the mounts of a machine with several disks, as its kernel tells them.
const machine = `22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro
23 22 0:21 / /proc rw,nosuid - proc proc rw
24 22 0:22 / /run rw,nosuid shared:5 - tmpfs tmpfs rw,size=10%
25 22 254:2 / /opt rw,relatime shared:9 master:3 - xfs /dev/vdb rw,attr2
26 22 254:1 /srv /export rw,relatime - ext4 /dev/vda1 rw
27 22 0:40 /@var /var\040of\134this rw - btrfs /dev/vdc rw,subvol=/@var
28 22 7:0 / /snap/core ro,nodev - squashfs /dev/loop0 ro,errors=continue
29 22 254:5 / /boot/efi ro,relatime - vfat /dev/vda5 rw,utf8
30 22 254:6 / /media/cd rw - iso9660 /dev/sr0 ro
31 22 0:50 / /home rw - nfs4 server:/home rw,vers=4.2
32 22 0:51 / /mnt/phone rw - fuse.sshfs me@host: rw
36 22 0:55 / /sys/fs/fuse/connections rw - fusectl fusectl rw
33 22 0:52 / /data rw - zfs tank/data rw,xattr
34 22 0:53 / /containers/root rw - overlay overlay rw,lowerdir=/l,upperdir=/u
35 22 0:54 / /hidden rw - virtiofs tag rw
`

// TestSyncMounts checks that each writable file system on a disk is synced once, that
// those of other machines are left out and told, and that one which fails is an error and
// keeps no other from being synced.
func TestSyncMounts(t *testing.T) {
	t.Parallel()
	mounts, err := parseMounts(machine)
	if err != nil {
		t.Fatal(err)
	}
	var synced, told []string
	err = syncMounts(mounts, func(path string) error {
		synced = append(synced, path)
		switch path {
		case "/opt":
			return syscall.EIO
		case "/hidden":
			return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
		}
		return nil
	}, func(text string) { told = append(told, text) })
	if want := []string{"/", "/opt", `/var of\this`, "/boot/efi", "/data", "/containers/root", "/hidden"}; !slices.Equal(synced, want) {
		t.Errorf("synced are %q, not %q", synced, want)
	}
	if want := []string{"not synced to disk: /home, a network file system (nfs4)", "not synced to disk: /mnt/phone, a file system of a program (fuse.sshfs)"}; !slices.Equal(told, want) {
		t.Errorf("it tells %q, not %q", told, want)
	}
	if !errors.Is(err, syscall.EIO) || !strings.HasPrefix(err.Error(), "cannot sync the file system of /opt, where packages may have files: ") || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it ends with %v", err)
	}
	if _, err := parseMounts("22 1 254:1 / /\n"); err == nil {
		t.Error("half of a line is a mount")
	}
	if err := Root(t.TempDir()).SyncMounts(nil); err == nil {
		t.Error("without its mounts a host is synced")
	}
}
