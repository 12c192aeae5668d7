// Package credential stores who is let in: the keys of hosts, tokens, users, approles and
// policies, one entry each. Folder keeps them in files.
//
// It never decides who may do what and never interprets an entry.
package credential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
)

// Store is where credentials are kept, an entry for each. A name is of letters, digits, "-",
// "_", "." and "@", and does not begin with ".": it is the name of a file.
type Store interface {
	// Get returns an entry, which nobody changes; os.ErrNotExist when there is none of that
	// name.
	Get(name string) ([]byte, error)
	// Change replaces an entry by what change makes of it, atomically: nobody else changes
	// or removes it meanwhile. change gets nil for an entry that is missing. If it returns
	// nil, the entry is removed; if it fails, nothing changes, and Change returns its error.
	// It may be called again when somebody else was faster. When Change returns, the
	// entry is durable and counts.
	Change(name string, change func(body []byte) ([]byte, error)) error
	// List returns all entries in the order of their names.
	List() ([]Entry, error)
	// Watch calls changed when it has begun and after entries were changed, added or
	// removed, until ctx ends. It may call late, and once for several changes.
	Watch(ctx context.Context, changed func())
}

// Entry says of an entry what the store itself knows.
type Entry struct {
	Name string
	// Made is when it was put.
	Made time.Time
}

// Put makes an entry.
func Put(s Store, name string, body []byte) error {
	return s.Change(name, func([]byte) ([]byte, error) { return body, nil })
}

// Update is Store.Change of an entry that is there; os.ErrNotExist when there is none of
// that name.
func Update(s Store, name string, change func(body []byte) ([]byte, error)) error {
	return s.Change(name, func(body []byte) ([]byte, error) {
		if body == nil {
			return nil, os.ErrNotExist
		}
		return change(body)
	})
}

// Remove removes an entry; os.ErrNotExist when there is none of that name.
func Remove(s Store, name string) error { return RemoveIf(s, name, nil) }

// Folder is a Store with a file for each entry. The process that holds the lock of the site's
// folder has it open: what others do to the files of entries that were read does not count
// before the next start.
type Folder struct {
	dir string

	// changing is held while an entry is changed.
	changing sync.Mutex
	mu       sync.Mutex
	// known are the entries that were read or written.
	known   map[string][]byte
	changed wait.Watchers
}

var _ Store = (*Folder)(nil)

// OpenFolder makes the folder when it is missing.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of credentials: %w", err)
	}
	return &Folder{dir: filepath.Clean(dir), known: map[string][]byte{}}, nil
}

func (f *Folder) path(name string) string { return f.dir + string(filepath.Separator) + name + suffix }

// suffix ends the names of the files.
const suffix = ".json"

// Get implements Store.
func (f *Folder) Get(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if body, known := f.known[name]; known {
		return body, nil
	}
	body, err := os.ReadFile(f.path(name))
	if err == nil {
		f.known[name] = body
	}
	return body, err
}

func (f *Folder) put(name string, body []byte) error {
	if err := durable.WriteFile(f.path(name), body, 0o600); err != nil {
		f.forget(name) // Nobody knows what is there.
		return err
	}
	f.mu.Lock()
	f.known[name] = body
	f.mu.Unlock()
	f.changed.Notify()
	return nil
}

func (f *Folder) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, name)
}

// Change implements Store.
func (f *Folder) Change(name string, change func(body []byte) ([]byte, error)) error {
	f.changing.Lock()
	defer f.changing.Unlock()
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
		return f.put(name, next)
	case missing:
		return nil
	}
	if err := os.Remove(f.path(name)); err != nil {
		return err
	}
	f.forget(name) // Not before: somebody could read it once more.
	f.changed.Notify()
	return durable.SyncFolder(f.dir)
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
		all = append(all, Entry{Name: name, Made: info.ModTime()})
	}
	// The files of "a" and "a-b" are in the other order.
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// pause is the least time between two calls for changes: who makes keys for a fleet
// changes the folder thousands of times, and each call may cost a look at all entries.
// Who is withdrawn is out within a second nevertheless.
const pause = 500 * time.Millisecond

// Watch implements Store.
func (f *Folder) Watch(ctx context.Context, changed func()) {
	signal, leave := f.changed.Add()
	defer leave()
	for {
		changed()
		if wait.Sleep(ctx, pause) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-signal:
		}
	}
}
