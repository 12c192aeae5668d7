package guard

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// File is the file in which one server keeps the States of all its logs. What is in it
// is the same on every server that has a copy of these logs.
//
// A write replaces the file as a whole. States that arrive while one write is under
// way share the next, so that many tenants do not cost a write each.
type File struct {
	path  string
	write func(path string, data []byte, mode os.FileMode) error
	// writing has a value while a write is under way.
	writing chan struct{}
	mu      sync.Mutex
	// kept are the States on disk by tenant; next are those of the next write, nil
	// while there are none.
	kept map[string]State
	next *batch
}

// batch is the States of one write. err is the result once written is closed.
type batch struct {
	states  map[string]State
	written chan struct{}
	err     error
}

// content is what the file holds.
const content = "logs"

// ErrDamaged means that the file is not as it was written.
var ErrDamaged = errors.New("is damaged")

// OpenFile reads the file. If there is none, all logs are new.
func OpenFile(path string) (*File, error) {
	f := &File{path: path, write: durable.WriteFile, writing: make(chan struct{}, 1), kept: map[string]State{}}
	body, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the guard of the logs: %w", err)
	}
	err = format.Guard.DecodeSummed(body, content, &f.kept)
	if format.IsUnsupported(err) {
		return nil, fmt.Errorf("the guard %s of the logs was %w; start a version that reads it", path, err)
	}
	for _, tenant := range slices.Sorted(maps.Keys(f.kept)) {
		if err == nil {
			err = f.kept[tenant].check()
		}
	}
	if err == nil && f.kept == nil {
		err = errors.New("it has no logs")
	}
	if err != nil {
		return nil, fmt.Errorf("the guard %s of the logs %w: %w; restore a backup, or run osupgrade-agent recover to continue with the logs as they are", path, ErrDamaged, err)
	}
	return f, nil
}

// State returns what is kept of a tenant's log.
func (f *File) State(tenant string) State { return entry{f, tenant}.Read() }

// Forget drops what is kept of a tenant's log: a person accepts the log as it is.
func (f *File) Forget(tenant string) error { return entry{f, tenant}.Write(State{}) }

// Guard makes the guard of a tenant's log.
func (f *File) Guard(tenant string) *Guard { return New(entry{f, tenant}) }

// entry is the State of one log in a File.
type entry struct {
	file   *File
	tenant string
}

// Read implements Storage.
func (e entry) Read() State {
	e.file.mu.Lock()
	defer e.file.mu.Unlock()
	return e.file.kept[e.tenant]
}

// Write implements Storage.
func (e entry) Write(s State) error {
	b, first := e.file.add(e.tenant, s)
	if first {
		e.file.flush(b)
	}
	<-b.written
	return b.err
}

// add puts a State into the next write. first reports that nobody else is about to
// make that write.
func (f *File) add(tenant string, s State) (b *batch, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first = f.next == nil; first {
		f.next = &batch{states: map[string]State{}, written: make(chan struct{})}
	}
	f.next.states[tenant] = s
	return f.next, first
}

// flush makes a write once the one before it has ended. After an error nothing of it
// counts: each owner tries again.
func (f *File) flush(b *batch) {
	f.writing <- struct{}{}
	defer func() { <-f.writing }()
	defer close(b.written)
	f.mu.Lock()
	all := maps.Clone(f.kept)
	f.next = nil
	f.mu.Unlock()
	maps.Copy(all, b.states)
	maps.DeleteFunc(all, func(_ string, s State) bool { return s == State{} })
	body, err := format.Guard.EncodeSummed(content, all)
	if err == nil {
		err = f.write(f.path, body, 0o600)
	}
	if b.err = err; err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = all
}
