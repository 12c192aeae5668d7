package apt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// host is the file system of the host: root is "/" except in tests.
type host struct{ root string }

func (h host) path(name string) string { return filepath.Join(h.root, name) }

func (h host) exists(name string) bool {
	_, err := os.Lstat(h.path(name))
	return err == nil
}

// read returns a file; empty if there is none.
func (h host) read(name string) (string, error) {
	data, err := os.ReadFile(h.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// names returns the names in a folder; none if it does not exist.
func (h host) names(folder string) ([]string, error) {
	entries, err := os.ReadDir(h.path(folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// filesystem returns where a folder is, and how much is free there for root. A folder
// that does not exist is where its parent is.
func (h host) filesystem(folder string) (filesystem, error) {
	var stat unix.Stat_t
	var free unix.Statfs_t
	for path := h.path(folder); ; path = filepath.Dir(path) {
		err := unix.Stat(path, &stat)
		if errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
			continue
		}
		if err == nil {
			err = unix.Statfs(path, &free)
		}
		if err != nil {
			return filesystem{}, fmt.Errorf("cannot tell the free space of %s: %w", folder, err)
		}
		return filesystem{id: stat.Dev, free: int64(free.Bfree) * free.Bsize}, nil
	}
}

// synced are the folders whose file systems are synced: apt syncs neither its lists
// nor its archives, dpkg not all that its scripts write.
var synced = []string{"/var/lib/apt/lists", archivesFolder, "/var/lib/dpkg", "/etc", "/usr", "/boot"}

// sync has everything on disk that apt and dpkg have written. Without it a power cut
// leaves lists and archives empty.
func (h host) sync() error {
	for _, folder := range synced {
		if err := syncFilesystem(h.path(folder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
