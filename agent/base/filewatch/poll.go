package filewatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const pollInterval = time.Second

// poll is Watch without the kernel's help.
func (w *watched) poll(ctx context.Context, changed func()) error {
	before, err := w.look()
	if err != nil {
		return err
	}
	changed()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		now, err := w.look()
		if err != nil {
			return err
		}
		for folder := range w.folders {
			if now[folder] != before[folder] {
				return fmt.Errorf("cannot watch %s: %w", folder, ErrGone)
			}
		}
		if !maps.Equal(before, now) {
			changed()
		}
		before = now
	}
}

// stamp tells a file from another one of its name, and from what it was before a write.
// That of a watched folder is its inode alone.
type stamp struct {
	inode   uint64
	size    int64
	written time.Time
}

// look returns the stamps of the folders, and of the files that count.
func (w *watched) look() (map[string]stamp, error) {
	stamps := map[string]stamp{}
	for folder, whole := range w.folders {
		info, err := os.Stat(folder)
		if err != nil {
			return nil, fmt.Errorf("cannot watch %s: %w", folder, err)
		}
		stamps[folder] = stamp{inode: inodeOf(info)}
		if !whole {
			continue
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("cannot watch %s: %w", folder, err)
		}
		for _, entry := range entries {
			if err := note(stamps, filepath.Join(folder, entry.Name())); err != nil {
				return nil, err
			}
		}
	}
	for file := range w.files {
		if err := note(stamps, file); err != nil {
			return nil, err
		}
	}
	return stamps, nil
}

// note notes the stamp of a file, if there is one.
func note(stamps map[string]stamp, file string) error {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", file, err)
	}
	stamps[file] = stamp{inode: inodeOf(info), size: info.Size(), written: info.ModTime()}
	return nil
}

func inodeOf(info fs.FileInfo) uint64 {
	stat, _ := info.Sys().(*syscall.Stat_t)
	return stat.Ino
}
