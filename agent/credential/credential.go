// Package credential stores the keys of hosts and the tokens of clients, one entry
// each.
//
// It never decides who may do what and never interprets an entry.
package credential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/filewatch"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// Store is where credentials are kept. A name has no character that means
// anything in a path or a subject.
type Store interface {
	// Get returns an entry; os.ErrNotExist when there is none of that name.
	Get(name string) ([]byte, error)
	// Stat returns what the store knows of an entry; os.ErrNotExist when there is none of
	// that name. It costs less than Get.
	Stat(name string) (Entry, error)
	// Put makes an entry durable. It counts at once.
	Put(name string, body []byte) error
	// Update replaces an entry by what change makes of it, in one step: nobody else
	// changes or removes it meanwhile. os.ErrNotExist when there is none of that name.
	Update(name string, change func(body []byte) ([]byte, error)) error
	// Change is Update for an entry that may be missing: change gets nil then, and what it
	// makes of it is put. If it returns nil, the entry is removed.
	Change(name string, change func(body []byte) ([]byte, error)) error
	// Remove removes an entry durably; os.ErrNotExist when there is none of that name.
	Remove(name string) error
	// List returns all entries by name.
	List() ([]Entry, error)
	// Watch calls changed when it has begun and after entries were changed, added or
	// removed, until ctx ends or the watch fails. It may call late, once for several
	// changes, and for nothing.
	Watch(ctx context.Context, changed func()) error
}

// Entry says of an entry what the store itself knows.
type Entry struct {
	Name string
	// Made is when it was put.
	Made time.Time
	// file is the file of the entry.
	file os.FileInfo
}

// Same reports whether an entry is the one that it was: a change makes another file or
// changes its time or size.
func (e Entry) Same(other Entry) bool {
	return e.file != nil && other.file != nil && os.SameFile(e.file, other.file) && e.Made.Equal(other.Made) && e.file.Size() == other.file.Size()
}

// settling is how long after a change another one may leave the file with the same time: the
// clock of a file system moves by steps of some milliseconds, of some by a second.
const settling = 2 * time.Second

// settled reports whether each further change shows.
func (e Entry) settled(now time.Time) bool { return now.Sub(e.Made) > settling }

// Folder is a Store with a file for each entry. Whoever may write to the folder
// adds and removes files, also while the site runs.
type Folder struct {
	dir string
}

var _ Store = (*Folder)(nil)

// OpenFolder makes the folder when it is missing.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of credentials: %w", err)
	}
	return &Folder{dir: filepath.Clean(dir)}, nil
}

func (f *Folder) path(name string) string { return f.dir + string(filepath.Separator) + name + suffix }

// suffix ends the names of the files.
const suffix = ".json"

// Get implements Store.
func (f *Folder) Get(name string) ([]byte, error) { return os.ReadFile(f.path(name)) }

// Stat implements Store.
func (f *Folder) Stat(name string) (Entry, error) {
	info, err := os.Stat(f.path(name))
	if err != nil {
		return Entry{}, err
	}
	return Entry{Name: name, Made: info.ModTime(), file: info}, nil
}

// Put implements Store.
func (f *Folder) Put(name string, body []byte) error {
	return durable.WriteFile(f.path(name), body, 0o600)
}

// Update implements Store.
func (f *Folder) Update(name string, change func(body []byte) ([]byte, error)) error {
	return f.Change(name, func(body []byte) ([]byte, error) {
		if body == nil {
			return nil, &os.PathError{Op: "open", Path: f.path(name), Err: os.ErrNotExist}
		}
		return change(body)
	})
}

// Change implements Store. Without the lock an update under way would bring the entry
// back that a command of the site's machine has just withdrawn.
func (f *Folder) Change(name string, change func(body []byte) ([]byte, error)) error {
	lock, err := durable.WaitForFolder(f.dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	body, err := f.Get(name)
	missing := errors.Is(err, os.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	next, err := change(body)
	switch {
	case err != nil:
		return err
	case next != nil:
		return f.Put(name, next)
	case missing:
		return nil
	}
	if err := os.Remove(f.path(name)); err != nil {
		return err
	}
	return durable.SyncFolder(f.dir)
}

// Remove implements Store.
func (f *Folder) Remove(name string) error {
	return f.Update(name, func([]byte) ([]byte, error) { return nil, nil })
}

// List implements Store.
func (f *Folder) List() ([]Entry, error) {
	files, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the folder of credentials: %w", err)
	}
	var all []Entry
	for _, file := range files {
		name, ours := strings.CutSuffix(file.Name(), suffix)
		if !ours || !file.Type().IsRegular() {
			continue
		}
		info, err := file.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue // It was removed meanwhile.
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list the folder of credentials: %w", err)
		}
		all = append(all, Entry{Name: name, Made: info.ModTime(), file: info})
	}
	return all, nil
}

// pause is the least time between two calls for changes: who makes keys for a fleet
// changes the folder thousands of times, and each call may cost a look at all entries.
// Who is withdrawn is out within a second nevertheless.
const pause = 500 * time.Millisecond

// Watch implements Store.
func (f *Folder) Watch(ctx context.Context, changed func()) error {
	signal, ended := wait.NewSignal(), make(chan error, 1)
	go func() { ended <- filewatch.Watch(ctx, []string{f.dir}, signal.Set) }()
	for {
		select {
		case err := <-ended:
			return err
		case <-signal:
			changed()
			_ = wait.Sleep(ctx, pause)
		}
	}
}

// again is the time after which a watch that has failed is begun anew.
const again = 10 * time.Second

// Follow calls changed after entries of a store were added or removed, until ctx ends.
// While the store cannot be watched, it calls changed now and then: a credential that
// was withdrawn must not count on. what names the credentials in the log.
func Follow(ctx context.Context, s Store, what string, log *slog.Logger, changed func()) {
	var failing throttle.Failing
	for {
		err := s.Watch(ctx, changed)
		if ctx.Err() != nil {
			return
		}
		if failing.Due(time.Now()) {
			log.Warn("cannot watch "+what+" for changes; they are looked at every "+again.String(), "error", err)
		}
		changed()
		if wait.Sleep(ctx, again) != nil {
			return
		}
	}
}
