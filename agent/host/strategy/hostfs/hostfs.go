// Package hostfs is the file system of a host as strategies see it: its files, its room,
// its locks. Where the root is another folder than "/", as in tests, nothing else changes.
package hostfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Root is the file system of a host: "/" except in tests.
type Root string

// Path returns where a file of the host is.
func (r Root) Path(name string) string { return filepath.Join(string(r), name) }

// Exists reports whether there is a file or folder.
func (r Root) Exists(name string) bool {
	_, err := os.Lstat(r.Path(name))
	return err == nil
}

// Read returns a file; empty if there is none.
func (r Root) Read(name string) (string, error) {
	data, err := os.ReadFile(r.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// Names returns the names in a folder; none if it does not exist.
func (r Root) Names(folder string) ([]string, error) {
	entries, err := os.ReadDir(r.Path(folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// Filesystem returns where a folder is, and how much is free there for root. A folder
// that does not exist is where its parent is.
func (r Root) Filesystem(folder string) (Filesystem, error) {
	var stat unix.Stat_t
	var free unix.Statfs_t
	for path := r.Path(folder); ; path = filepath.Dir(path) {
		err := unix.Stat(path, &stat)
		if errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
			continue
		}
		if err == nil {
			err = unix.Statfs(path, &free)
		}
		if err != nil {
			return Filesystem{}, fmt.Errorf("cannot tell the free space of %s: %w", folder, err)
		}
		return Filesystem{ID: stat.Dev, Free: int64(free.Bfree) * free.Bsize}, nil
	}
}

// Sync has everything on disk that was written to the file systems of some folders;
// those that do not exist are passed over.
func (r Root) Sync(ctx context.Context, folders ...string) error {
	for _, folder := range folders {
		if err := within(ctx, func() error { return syncFilesystem(r.Path(folder)) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot sync the file system of %s: %w", folder, err)
		}
	}
	return nil
}

func syncFilesystem(folder string) (err error) {
	file, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return unix.Syncfs(int(file.Fd()))
}
