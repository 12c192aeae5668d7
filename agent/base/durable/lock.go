package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
)

// Lock is a lock on a folder. Close or the end of the process releases it.
type Lock struct {
	file *os.File
}

// maxHolder is how many bytes of a lock file are read.
const maxHolder = 300

// LockFolder locks a folder by its lock file, at path. The error for a folder in
// use names the process and the text that its holder passed as holder.
func LockFolder(path, holder string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, unix.EROFS) {
		return nil, fmt.Errorf("cannot lock %s, which is needed also to read: %w; mount it read-write, or use a copy of the folder", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(inUse(file, path, err), file.Close())
	}
	if err := describe(file, holder); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", path, err), file.Close())
	}
	return &Lock{file: file}, nil
}

func inUse(file *os.File, path string, cause error) error {
	if !errors.Is(cause, unix.EWOULDBLOCK) {
		return fmt.Errorf("cannot lock %s: %w", path, cause)
	}
	held, err := io.ReadAll(io.LimitReader(file, maxHolder))
	by := strings.TrimSpace(string(held))
	if err != nil || by == "" {
		by = "another process"
	}
	return &InUseError{Path: path, By: by}
}

// InUseError means that another process has locked a folder.
type InUseError struct {
	// Path is the lock file, By the process and what it is.
	Path, By string
}

// Error implements error.
func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by %s; stop that first, or use another folder", e.Path, e.By)
}

// LockFolderWithin is LockFolder, and waits for a while for a process that has locked the
// folder for a moment.
func LockFolderWithin(ctx context.Context, path, holder string, most time.Duration) (*Lock, error) {
	waiting, stop := context.WithTimeout(ctx, most)
	defer stop()
	for {
		lock, err := LockFolder(path, holder)
		if _, used := errors.AsType[*InUseError](err); !used || wait.Sleep(waiting, 20*time.Millisecond) != nil {
			return lock, err
		}
	}
}

// describe writes the holder into the lock file, for the error of inUse.
func describe(file *os.File, holder string) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(file, "process %d (%s)\n", os.Getpid(), holder)
	return err
}

// Close releases the lock. The file stays: removing it would let two processes
// lock two files of the same name.
func (l *Lock) Close() error {
	// A program that is being started has a copy of the descriptor until it is executed: to
	// close ours would leave the folder locked for that time.
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
