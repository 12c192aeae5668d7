package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Lock is held on a folder until it is closed or the process ends.
type Lock struct {
	file *os.File
}

// maxHolder bounds what is read of a lock file, in bytes.
const maxHolder = 300

// LockFolder takes the lock file of a folder. The error of a folder in use
// says by whom, in the words that the holder passed as its own.
func LockFolder(path, holder string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
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
	return fmt.Errorf("%s is in use by %s; stop that first, or use another folder", path, by)
}

// describe leaves word of who holds the lock, for whoever comes next.
func describe(file *os.File, holder string) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(file, "process %d (%s)\n", os.Getpid(), holder)
	return err
}

// Close gives the lock up. The file stays, because removing it would let two
// holders lock two files of one name.
func (l *Lock) Close() error { return l.file.Close() }
