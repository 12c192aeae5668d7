package durable

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLockIsReleased checks that a lock is free once it is closed, also while a program that
// is being started has a copy of its descriptor.
func TestLockIsReleased(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := LockFolder(path, "the first")
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := unix.FcntlInt(lock.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.NewFile(uintptr(inherited), path).Close() }()
	if _, err := LockFolder(path, "the second"); err == nil || !strings.Contains(err.Error(), "is in use by process") || !strings.Contains(err.Error(), "(the first)") {
		t.Errorf("a folder in use: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := LockFolder(path, "the second")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
