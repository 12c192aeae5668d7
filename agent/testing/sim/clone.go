package sim

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// clone copies a machine, with the worker's identity, journal and key, and starts
// the copy: two machines are one host then. It returns nil if that cannot be done
// now.
func (w *World) clone(m *machine) *machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.cloned || m.traits.byzantine || w.quiet.Load() {
		return nil
	}
	c := &machine{
		w: w, name: m.name + "-clone", host: m.host, clock: &clock{}, link: newLink(), up: true, powered: make(chan struct{}), boot: m.boot + 1,
		role: m.role, labels: m.labels, traits: m.traits, installed: maps.Clone(m.installed), undone: maps.Clone(m.undone), version: m.version, was: maps.Clone(m.was), ran: maps.Clone(m.ran), drained: m.drained, cloned: true,
		releaseOf: maps.Clone(m.releaseOf), shipped: m.shipped, release: m.release, gaveUp: m.gaveUp, rejected: map[string]map[string]bool{}, judged: map[string]string{}, busy: map[string]time.Time{}, busyChanged: make(chan struct{}),
	}
	ofWorker, from := m.worker(1)
	worker, to := c.worker(1)
	w.must(os.Mkdir(to, 0o700))
	for _, file := range []string{"identity.json", "journal.json"} {
		body, err := os.ReadFile(filepath.Join(from, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		w.must(err)
		w.must(os.WriteFile(filepath.Join(to, file), body, 0o600))
	}
	m.cloned = true
	w.oracle.Clone(c.name, m.name, worker, ofWorker)
	w.note("%s is cloned", m.name)
	w.count("machines cloned")
	return c
}

// remove ends a machine for good.
func (m *machine) remove() {
	m.w.mu.Lock()
	m.removed = true
	m.w.oracle.Remove(m.name)
	m.w.mu.Unlock()
	m.w.count("machines removed")
	m.cutPower("it is removed")
}

// cloneOutage has one machine cloned, and later one of the two removed: the clone,
// or its original.
func (w *World) cloneOutage(start func(func())) func(on bool, n int) {
	var both []*machine
	return func(on bool, n int) {
		switch {
		case on && both == nil:
			m := w.inOrder[n%len(w.inOrder)]
			if c := w.clone(m); c != nil {
				both = []*machine{m, c}
				start(func() { w.keepWorker(c, 1) })
			}
		case !on && both != nil && w.rng.chance("clone is removed", 0.7):
			both[w.rng.n("clone or original", 2)].remove()
			both = nil
		}
	}
}
