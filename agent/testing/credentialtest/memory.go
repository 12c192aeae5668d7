// Package credentialtest has a store of credentials in memory, and the tests that each store
// of credentials passes.
package credentialtest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
)

// Memory is a credential.Store in memory. Its zero value is empty. It panics at what is
// no name of an entry: with a folder, that could be another file.
type Memory struct {
	// changing is held while an entry is changed.
	changing sync.Mutex
	mu       sync.Mutex
	entries  map[string]entry
	changed  wait.Watchers
}

type entry struct {
	body []byte
	made time.Time
}

var _ credential.Store = (*Memory)(nil)

// Get implements credential.Store.
func (m *Memory) Get(name string) ([]byte, error) {
	if name == "" || name[0] == '.' || strings.ContainsFunc(name, isNoName) {
		panic(fmt.Sprintf("%q cannot be the name of an entry", name))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, found := m.entries[name]; found {
		return e.body, nil
	}
	return nil, os.ErrNotExist
}

// isNoName reports whether no name has a character.
func isNoName(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._@", r)
}

// Change implements credential.Store.
func (m *Memory) Change(name string, change func(body []byte) ([]byte, error)) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	now, _ := m.Get(name) // It fails for an entry that is missing.
	next, err := change(now)
	if err != nil || now == nil && next == nil {
		return err
	}
	m.put(name, next)
	m.changed.Notify()
	return nil
}

// put replaces an entry; no body removes it.
func (m *Memory) put(name string, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if body == nil {
		delete(m.entries, name)
		return
	}
	if m.entries == nil {
		m.entries = map[string]entry{}
	}
	m.entries[name] = entry{body: bytes.Clone(body), made: time.Now()}
}

// List implements credential.Store.
func (m *Memory) List() ([]credential.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []credential.Entry
	for _, name := range slices.Sorted(maps.Keys(m.entries)) {
		all = append(all, credential.Entry{Name: name, Made: m.entries[name].made})
	}
	return all, nil
}

// Watch implements credential.Store.
func (m *Memory) Watch(ctx context.Context, changed func()) {
	signal, leave := m.changed.Add()
	defer leave()
	for {
		changed()
		select {
		case <-ctx.Done():
			return
		case <-signal:
		}
	}
}
