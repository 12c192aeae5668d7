// Package filewatch tells when one of several files or folders has changed.
//
// It decides which events of the file system count, and never reads a file.
package filewatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// ErrGone means that a watched folder was removed or renamed.
var ErrGone = errors.New("the folder is gone")

// Watch calls changed after each change of one of the paths until ctx ends or the
// watch fails. A path of a folder stands for the folder's own entries, not for
// those of its folders. A file need not exist: its folder is watched, because
// programs replace a file by another one of its name. changed is also called when the
// watch has begun, because an earlier change is not seen; it may be called several
// times for one change, and must not block.
//
// A user has only so many watches of the kernel, shared with the user's containers (128
// by default, see inotify(7)). Where none is left, the paths are looked at each second.
func Watch(ctx context.Context, paths []string, changed func()) error {
	w := watched{folders: map[string]bool{}, files: map[string]bool{}}
	for _, path := range paths {
		w.add(path)
	}
	watcher, err := w.watcher()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENOSPC) {
		return w.poll(ctx, changed)
	}
	if err != nil {
		return err
	}
	defer func() { _ = watcher.Close() }()
	changed()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-watcher.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("cannot watch files: %w", err)
			}
			changed() // Too many changes at once: some are not named.
		case event := <-watcher.Events:
			if w.gone(event) {
				return fmt.Errorf("cannot watch %s: %w", event.Name, ErrGone)
			}
			if w.counts(event) {
				changed()
			}
		}
	}
}

// watched are the folders that are watched, and the files to which their events
// are restricted.
type watched struct {
	// folders are the watched folders; true for one all of whose entries count.
	folders map[string]bool
	files   map[string]bool
}

// add adds a path, and returns the folder to watch for it.
func (w *watched) add(path string) (folder string) {
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		w.folders[path] = true
		return path
	}
	w.files[path] = true
	folder = filepath.Dir(path)
	if _, known := w.folders[folder]; !known {
		w.folders[folder] = false
	}
	return folder
}

// watcher returns a watch of the folders by the kernel.
func (w *watched) watcher() (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("cannot watch files: %w", err)
	}
	for folder := range w.folders {
		if err := watcher.Add(folder); err != nil {
			_ = watcher.Close()
			return nil, fmt.Errorf("cannot watch %s: %w", folder, err)
		}
	}
	return watcher, nil
}

// gone reports whether an event ends the watch of a folder.
func (w *watched) gone(e fsnotify.Event) bool {
	_, folder := w.folders[filepath.Clean(e.Name)]
	return folder && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename))
}

// counts reports whether an event is a change. A change of permissions or of times
// is none: to read a file may cause it.
func (w *watched) counts(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	name := filepath.Clean(e.Name)
	return w.files[name] || w.folders[filepath.Dir(name)]
}
