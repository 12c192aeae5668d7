// Package durable writes files that survive a crash of the process and a power
// cut of the machine, and locks folders.
//
// It decides nothing and never looks at the contents of a file.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// disk is the system calls that make a file durable. Only a power cut would show
// that a call is missing, so the tests record the calls.
type disk struct {
	sync       func(*os.File) error
	rename     func(from, to string) error
	syncFolder func(path string) error
}

func system() disk {
	return disk{sync: (*os.File).Sync, rename: os.Rename, syncFolder: SyncFolder}
}

// WriteFile replaces the content of a file atomically: readers, also after a
// power cut at any moment, see the old content or the new, never a part. It
// writes a temporary file beside it, syncs it, renames it and syncs the folder.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	return system().writeFile(path, data, mode)
}

func (d disk) writeFile(path string, data []byte, mode os.FileMode) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %s: %w", path, errors.Join(err, ignoreMissing(os.Remove(temporary.Name()))))
		}
	}()
	if err := d.fill(temporary, data, mode); err != nil {
		return errors.Join(err, temporary.Close())
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	if err := d.rename(temporary.Name(), path); err != nil {
		return err
	}
	return d.syncFolder(filepath.Dir(path))
}

func (d disk) fill(f *os.File, data []byte, mode os.FileMode) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	return d.sync(f)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// SyncFolder makes the entries of a folder durable.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
