package hostfs

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
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
// those of other machines are left out and told, and that one which fails keeps no other from
// being synced, and is an error if packages have files there.
func TestSyncMounts(t *testing.T) {
	t.Parallel()
	mounts, err := parseMounts(machine)
	if err != nil {
		t.Fatal(err)
	}
	var synced, told []string
	err = syncMounts(t.Context(), mounts, func(path string) error {
		synced = append(synced, path)
		switch path {
		case "/opt", "/data":
			return syscall.EIO
		case "/hidden":
			return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
		}
		return nil
	}, func(text string) { told = append(told, text) })
	if want := []string{"/", "/opt", "/boot/efi", `/var of\this`, "/data", "/containers/root", "/hidden"}; !slices.Equal(synced, want) {
		t.Errorf("synced are %q, not %q", synced, want)
	}
	if want := []string{"not synced to disk: /home, a network file system (nfs4)", "not synced to disk: /mnt/phone, a file system of a program (fuse.sshfs)", "not synced to disk: /data: input/output error"}; !slices.Equal(told, want) {
		t.Errorf("it tells %q, not %q", told, want)
	}
	if !errors.Is(err, syscall.EIO) || !strings.HasPrefix(err.Error(), "cannot sync the file system of /opt, where packages may have files: ") || errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "/data") {
		t.Errorf("it ends with %v", err)
	}
	if _, err := parseMounts("22 1 254:1 / /\n"); err == nil {
		t.Error("half of a line is a mount")
	}
	if err := Root(t.TempDir()).SyncMounts(t.Context(), nil); err == nil {
		t.Error("without its mounts a host is synced")
	}
}

// TestSyncMountsOfADiskThatHangs checks that a file system which does not answer holds up an
// upgrade for a short time if packages have no files there, and otherwise as long as the
// upgrade may take. A file system is synced where it is mounted a second time if another mount
// hides the first.
func TestSyncMountsOfADiskThatHangs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hangs, hidden string
		synced        []string
		told          int
		takes         time.Duration
		err           error
	}{
		"a backup disk": {"/mnt/backup", "", []string{"/", "/usr", "/mnt/backup", "/home"}, 1, othersLimit, nil},
		"programs":      {"/usr", "", nil, 0, time.Hour, context.DeadlineExceeded},
		"one is hidden": {"", "/usr", []string{"/", "/usr", "/mnt/backup", "/home", "/again"}, 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				mounts, err := parseMounts("1 1 8:1 / /mnt/backup rw - ext4 /dev/sdb1 rw\n2 1 8:2 / / rw - ext4 /dev/sda2 rw\n3 1 8:3 / /usr rw - ext4 /dev/sda3 rw\n4 1 8:4 / /home rw - ext4 /dev/sda4 rw\n5 1 8:3 / /again rw - ext4 /dev/sda3 rw\n")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				answers := make(chan struct{})
				defer close(answers)
				var mu sync.Mutex
				var synced, told []string
				began := time.Now()
				err = syncMounts(ctx, mounts, func(path string) error {
					mu.Lock()
					synced = append(synced, path)
					mu.Unlock()
					switch path {
					case c.hangs:
						<-answers
					case c.hidden:
						return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
					}
					return nil
				}, func(text string) { told = append(told, text) })
				synctest.Wait()
				if takes := time.Since(began); !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || takes != c.takes || err == nil && len(told) != c.told {
					t.Errorf("after %s it ends with %v, and tells %q", takes, err, told)
				}
				mu.Lock()
				defer mu.Unlock()
				if c.err == nil && !slices.Equal(synced, c.synced) {
					t.Errorf("synced are %q", synced)
				}
			})
		})
	}
}
